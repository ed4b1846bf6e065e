#include "media/decode_audio.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "media/byte_order.h"

namespace bezel {
namespace {

constexpr u32 kPcm = 1, kFloat = 3, kExtensible = 0xfffe;

struct Format {
  u32 tag = 0, channels = 0, rate = 0;
  u32 bytes = 0;  // of one sample
};

Result<Format> read_format(Bytes chunk) {
  if (chunk.size() < 16)
    return invalid("The WAV file's format takes {} bytes; it has at least 16.", chunk.size());
  Format format{.tag = little16(chunk, 0), .channels = little16(chunk, 2), .rate = little32(chunk, 4)};
  const u32 frame = little16(chunk, 12), bits = little16(chunk, 14);
  if (format.tag == kExtensible && chunk.size() >= 26) format.tag = little16(chunk, 24);
  if (format.tag != kPcm && format.tag != kFloat) {
    return fail(ErrorKind::kUnsupported,
                "The WAV file is encoded as {:#06x}; PCM (0x0001) and floating point (0x0003) can be read.",
                format.tag);
  }
  if (format.channels == 0 || format.channels > kMaxClipChannels) {
    return invalid("The WAV file has {} channels; 1 to {} are possible.", format.channels, kMaxClipChannels);
  }
  // Samples of 12 or 20 bits lie in the upper part of whole bytes, so the bytes are what counts.
  format.bytes = (bits + 7) / 8;
  const bool known = format.tag == kPcm ? format.bytes >= 1 && format.bytes <= 4 : bits == 32 || bits == 64;
  if (!known) {
    return fail(ErrorKind::kUnsupported,
                "The WAV file has {} bits a sample; 1 to 32, or 32 and 64 as floating point, can be read.",
                bits);
  }
  if (frame != format.bytes * format.channels) {
    return invalid("The WAV file has {} bytes a frame, but {} channels of {} bytes.", frame, format.channels,
                   format.bytes);
  }
  return format;
}

f32 read_sample(Bytes data, std::size_t at, const Format& format) {
  if (format.tag == kFloat) {
    if (format.bytes == 4) return std::bit_cast<f32>(little32(data, at));
    return static_cast<f32>(std::bit_cast<f64>(u64{little32(data, at + 4)} << 32 | little32(data, at)));
  }
  if (format.bytes == 1)
    return static_cast<f32>(static_cast<i32>(byte_at(data, at)) - 128) / 128;  // unsigned, alone
  u32 value = 0;  // the sample's bytes at the upper end
  for (u32 i = 0; i < format.bytes; ++i) value |= byte_at(data, at + i) << (8 * (4 - format.bytes + i));
  return static_cast<f32>(static_cast<i32>(value)) * 0x1p-31f;
}

Result<Clip> read_samples(Bytes data, const Format& format) {
  const std::size_t frame = std::size_t{format.bytes} * format.channels;
  const std::size_t frames = data.size() / frame;
  const auto kept = static_cast<std::size_t>(std::min<u64>(frames, u64{format.rate} * kDecodedSeconds));
  Clip clip{.rate = format.rate, .channels = format.channels};
  clip.samples.resize(kept * format.channels);
  for (std::size_t i = 0; i < clip.samples.size(); ++i) {
    clip.samples[i] = read_sample(data, i * format.bytes, format);
  }
  if (kept < frames) {
    clip.cut = true;
    clip.seconds = static_cast<f64>(frames) / format.rate;
  }
  TRY(check_clip(clip));
  return clip;
}

bool is_wav(Bytes file) {
  return has_text(file, 8, "WAVE") &&
         (has_text(file, 0, "RIFF") || has_text(file, 0, "RF64") || has_text(file, 0, "BW64"));
}

}  // namespace

Result<Clip> decode_wav(Bytes file) {
  if (!is_wav(file)) return invalid("The recording is no WAV file.");
  std::optional<Format> format;
  for (u64 at = 12; at + 8 <= file.size();) {
    const auto header = static_cast<std::size_t>(at);
    const u64 stated = little32(file, header + 4);
    // What ends too early is read as far as it goes: recorders that lose power, and programs that write into
    // a pipe and do not know the length, leave such files.
    const Bytes body = file.subspan(header + 8);
    const Bytes chunk = body.first(static_cast<std::size_t>(std::min<u64>(stated, body.size())));
    if (has_text(file, header, "fmt ")) {
      format = TRY(read_format(chunk));
    } else if (has_text(file, header, "data")) {
      if (!format) return invalid("The WAV file's samples come before its format.");
      return read_samples(chunk, *format);
    }
    at += 8 + stated + stated % 2;  // chunks begin at even places
  }
  return invalid("The WAV file of {} bytes has no samples.", file.size());
}

Result<Clip> decode_audio(Bytes file) {
  if (file.empty()) return invalid("The recording's file is empty.");
  return is_wav(file) ? decode_wav(file) : decode_compressed(file);
}

}  // namespace bezel

#include <FLAC/stream_decoder.h>
#include <dlfcn.h>
#include <mpg123.h>

#include <algorithm>
#include <memory>

#include "base/format_text.h"
#include "media/byte_order.h"
#include "media/decode_audio.h"

namespace bezel {
namespace {

u64 frames_kept(u32 rate) { return u64{rate} * kDecodedSeconds; }

// FLAC. A few bytes can stand for a long silence, so what is kept is bounded by time, and more than two
// channels are mixed to one at once.

struct FlacReader {
  Bytes file;
  std::size_t at = 0;
  Clip clip = {};
  u32 stored_channels = 0;
  u64 total = 0;  // frames, as the header says; 0: unknown
  bool full = false;
  bool changed = false;  // to another rate or number of channels
};

FLAC__StreamDecoderReadStatus flac_read(const FLAC__StreamDecoder*, FLAC__byte* to, std::size_t* bytes,
                                        void* client) {
  auto& reader = *static_cast<FlacReader*>(client);
  const std::size_t count = std::min(*bytes, reader.file.size() - reader.at);
  if (count > 0) std::memcpy(to, reader.file.data() + reader.at, count);
  reader.at += count;
  *bytes = count;
  return count == 0 ? FLAC__STREAM_DECODER_READ_STATUS_END_OF_STREAM
                    : FLAC__STREAM_DECODER_READ_STATUS_CONTINUE;
}

FLAC__StreamDecoderWriteStatus flac_write(const FLAC__StreamDecoder*, const FLAC__Frame* frame,
                                          const FLAC__int32* const samples[], void* client) {
  auto& reader = *static_cast<FlacReader*>(client);
  Clip& clip = reader.clip;
  const u32 rate = frame->header.sample_rate, channels = frame->header.channels,
            bits = frame->header.bits_per_sample;
  if (clip.rate == 0) {
    clip.rate = rate;
    reader.stored_channels = channels;
    clip.channels = channels > 2 ? 1 : channels;
  }
  reader.changed = rate != clip.rate || channels != reader.stored_channels;
  if (reader.changed || rate > kMaxClipRate || bits == 0 || bits > 32)
    return FLAC__STREAM_DECODER_WRITE_STATUS_ABORT;
  const u64 room = frames_kept(rate) - clip.samples.size() / clip.channels;
  const auto count = static_cast<u32>(std::min<u64>(room, frame->header.blocksize));
  const u32 mixed = channels / clip.channels;
  const f64 scale = 1.0 / static_cast<f64>(u64{1} << (bits - 1)) / mixed;
  for (u32 i = 0; i < count; ++i) {
    f64 sum = 0;
    for (u32 c = 0; c < channels; ++c) {
      sum += samples[c][i];
      if (clip.channels == 1 && c + 1 < channels) continue;
      clip.samples.push_back(static_cast<f32>(sum * scale));
      sum = 0;
    }
  }
  reader.full = count < frame->header.blocksize;
  return FLAC__STREAM_DECODER_WRITE_STATUS_CONTINUE;
}

void flac_metadata(const FLAC__StreamDecoder*, const FLAC__StreamMetadata* metadata, void* client) {
  if (metadata->type != FLAC__METADATA_TYPE_STREAMINFO) return;
  static_cast<FlacReader*>(client)->total = metadata->data.stream_info.total_samples;
}

// The decoder goes on at the next frame that is whole.
void flac_error(const FLAC__StreamDecoder*, FLAC__StreamDecoderErrorStatus, void*) {}

struct DeleteFlac {
  void operator()(FLAC__StreamDecoder* decoder) const { FLAC__stream_decoder_delete(decoder); }
};

Result<Clip> decode_flac(Bytes file, bool in_ogg) {
  const std::unique_ptr<FLAC__StreamDecoder, DeleteFlac> decoder(FLAC__stream_decoder_new());
  if (decoder == nullptr) return fail(ErrorKind::kMemory, "There is no memory for a FLAC decoder.");
  FlacReader reader{.file = file};
  const auto start = in_ogg ? FLAC__stream_decoder_init_ogg_stream : FLAC__stream_decoder_init_stream;
  const auto status = start(decoder.get(), flac_read, nullptr, nullptr, nullptr, nullptr, flac_write,
                            flac_metadata, flac_error, &reader);
  if (status != FLAC__STREAM_DECODER_INIT_STATUS_OK) {
    return invalid("The FLAC decoder does not start: {}.", FLAC__StreamDecoderInitStatusString[status]);
  }
  while (!reader.full && FLAC__stream_decoder_process_single(decoder.get()) != 0) {
    const auto state = FLAC__stream_decoder_get_state(decoder.get());
    if (state == FLAC__STREAM_DECODER_END_OF_STREAM || state == FLAC__STREAM_DECODER_ABORTED) break;
  }
  if (reader.changed)
    return fail(ErrorKind::kUnsupported, "The FLAC file changes its sample rate or its channels midway.");
  Clip& clip = reader.clip;
  if (clip.samples.empty() && clip.rate <= kMaxClipRate) {
    return invalid("The FLAC file has no whole frame.");
  }
  TRY(check_clip(clip));
  clip.cut = reader.full;
  if (clip.cut) clip.seconds = static_cast<f64>(reader.total) / clip.rate;
  return std::move(clip);
}

// MP3. The library is opened when it is first needed: Debian has it only as a shared one, and without it
// everything else still works.

struct Mpg123 {
  decltype(&mpg123_init) init = nullptr;
  decltype(&mpg123_new) create = nullptr;
  decltype(&mpg123_delete) destroy = nullptr;
  decltype(&mpg123_param) param = nullptr;
  decltype(&mpg123_open_feed) open_feed = nullptr;
  decltype(&mpg123_feed) feed = nullptr;
  decltype(&mpg123_read) read = nullptr;
  decltype(&mpg123_getformat) getformat = nullptr;
  std::string problem = {};  // why it cannot be used; empty if it can
};

template <class Function>
void find(void* library, const char* name, Function& function, Mpg123& mpg123) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr && mpg123.problem.empty())
    mpg123.problem = format_text("it has no function {}", name);
}

Mpg123 open_mpg123() {
  Mpg123 mpg123;
  void* library = dlopen("libmpg123.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    mpg123.problem = why == nullptr ? "it was not found" : why;
    return mpg123;
  }
  find(library, "mpg123_init", mpg123.init, mpg123);
  find(library, "mpg123_new", mpg123.create, mpg123);
  find(library, "mpg123_delete", mpg123.destroy, mpg123);
  find(library, "mpg123_param", mpg123.param, mpg123);
  find(library, "mpg123_open_feed", mpg123.open_feed, mpg123);
  find(library, "mpg123_feed", mpg123.feed, mpg123);
  find(library, "mpg123_read", mpg123.read, mpg123);
  find(library, "mpg123_getformat", mpg123.getformat, mpg123);
  if (mpg123.problem.empty() && mpg123.init() != MPG123_OK) mpg123.problem = "it does not start";
  return mpg123;
}

Status take_format(const Mpg123& mpg123, mpg123_handle* handle, Clip& clip) {
  long rate = 0;
  int channels = 0, encoding = 0;
  if (mpg123.getformat(handle, &rate, &channels, &encoding) != MPG123_OK || encoding != MPG123_ENC_FLOAT_32 ||
      rate < 1 || rate > kMaxClipRate || channels < 1 || channels > 2) {
    return invalid("The MP3 file has {} channels and {} samples a second, which cannot be.", channels, rate);
  }
  const auto new_rate = static_cast<u32>(rate), new_channels = static_cast<u32>(channels);
  if (clip.rate != 0 && (clip.rate != new_rate || clip.channels != new_channels)) {
    return fail(ErrorKind::kUnsupported, "The MP3 file changes its sample rate or its channels midway.");
  }
  clip.rate = new_rate;
  clip.channels = new_channels;
  return {};
}

Result<Clip> decode_mp3(Bytes file) {
  static const Mpg123 mpg123 = open_mpg123();
  if (!mpg123.problem.empty()) {
    return fail(ErrorKind::kUnsupported, "MP3 needs the library mpg123, which cannot be used: {}.",
                mpg123.problem);
  }
  const std::unique_ptr<mpg123_handle, decltype(mpg123.destroy)> handle(mpg123.create(nullptr, nullptr),
                                                                        mpg123.destroy);
  if (handle == nullptr) return fail(ErrorKind::kMemory, "There is no memory for an MP3 decoder.");
  if (mpg123.param(handle.get(), MPG123_ADD_FLAGS, MPG123_QUIET | MPG123_FORCE_FLOAT, 0) != MPG123_OK ||
      mpg123.open_feed(handle.get()) != MPG123_OK) {
    return invalid("The MP3 decoder does not start.");
  }
  Clip clip = {};
  std::vector<f32> buffer(16'384);
  while (!clip.cut) {
    std::size_t done = 0;
    const int status = mpg123.read(handle.get(), buffer.data(), buffer.size() * sizeof(f32), &done);
    clip.samples.insert(clip.samples.end(), buffer.begin(),
                        buffer.begin() + static_cast<i64>(done / sizeof(f32)));
    if (status == MPG123_NEED_MORE && !file.empty()) {
      constexpr std::size_t kPiece = 65'536;  // the library copies what it is given
      const Bytes piece = file.first(std::min(file.size(), kPiece));
      file = file.subspan(piece.size());
      if (mpg123.feed(handle.get(), reinterpret_cast<const unsigned char*>(piece.data()), piece.size()) !=
          MPG123_OK) {
        break;
      }
    } else if (status == MPG123_NEW_FORMAT) {
      TRY(take_format(mpg123, handle.get(), clip));
    } else if (status != MPG123_OK || done == 0) {
      break;  // the end, or damage: what came before it stays
    }
    const u64 room = frames_kept(clip.rate) * clip.channels;
    if (clip.samples.size() > room) {
      clip.samples.resize(static_cast<std::size_t>(room));
      clip.cut = true;
    }
  }
  if (clip.samples.empty()) return invalid("The MP3 file has no whole frame.");
  TRY(check_clip(clip));
  return clip;
}

// A tag, or the header of a frame: eleven ones, then a layer, a bit rate and a sample rate that exist.
bool is_mp3(Bytes file) {
  if (has_text(file, 0, "ID3")) return true;
  if (file.size() < 4) return false;
  const u32 header = big32(file, 0);
  return header >> 21 == 0x7ff && (header >> 17 & 3) != 0 && (header >> 12 & 15) != 15 &&
         (header >> 10 & 3) != 3;
}

const char* other_kind(Bytes file) {
  if (has_text(file, 0, "OggS")) return "is Ogg Vorbis or Opus";
  if (has_text(file, 4, "ftyp")) return "is MPEG-4 (M4A)";
  if (has_text(file, 0, "FORM")) return "is AIFF";
  return "is of an unknown kind";
}

}  // namespace

Result<Clip> decode_compressed(Bytes file) {
  if (has_text(file, 0, "fLaC")) return decode_flac(file, false);
  if (has_text(file, 0, "OggS") && has_text(file, 28,
                                            "\x7f"
                                            "FLAC"))
    return decode_flac(file, true);
  if (is_mp3(file)) return decode_mp3(file);
  return fail(ErrorKind::kUnsupported, "The recording {}; WAV, FLAC and MP3 can be read.", other_kind(file));
}

}  // namespace bezel

// The methods of a Service that look and listen: the host gives pixels and samples, and names the result in
// messages.
#include <cstring>

#include "api/media_part.h"
#include "api/service_models.h"
#include "media/decode_audio.h"
#include "media/video.h"

namespace bezel {
namespace {

using nlohmann::json;

constexpr u64 kMostSoundBytes = u64{64} << 20;  // 30 s of 48 kHz in eight channels are 46 MB
constexpr u64 kStripPixels = 1 << 18;           // read at once

Progress tell(const Caller& caller) {
  return [&caller](u64 done, u64 total) {
    caller.event({{"type", "progress"}, {"done", done}, {"total", total}});
    return caller.go_on();
  };
}

// Pixels of 3 or 4 bytes; a fourth, transparency, is dropped.
Task<Result<Image>> read_pixels(Source& source, Size size) {
  CO_TRY(check_image_size(size, "The picture"));
  const u64 pixels = u64{size.width} * size.height;
  const u64 bytes = pixels == 0 ? 0 : source.size() / pixels;
  if ((bytes != 3 && bytes != 4) || bytes * pixels != source.size()) {
    co_return invalid("A picture of {} x {} pixels has 3 or 4 bytes for each, but there are {} bytes.",
                      size.width, size.height, source.size());
  }
  Image image{size.width, size.height, {}};
  image.rgb.resize(static_cast<std::size_t>(pixels * 3));
  std::vector<std::byte> strip(static_cast<std::size_t>(std::min(pixels, kStripPixels) * bytes));
  u8* out = image.rgb.data();
  for (u64 at = 0; at < source.size(); at += strip.size()) {
    strip.resize(static_cast<std::size_t>(std::min<u64>(strip.size(), source.size() - at)));
    CO_TRY(co_await source.read(at, strip));
    for (std::size_t i = 0; i < strip.size(); i += bytes, out += 3) std::memcpy(out, &strip[i], 3);
  }
  co_return image;
}

// A WAV file, of which the beginning is enough, or samples of 4 bytes.
Task<Result<Clip>> read_sound(Source& source, const Arguments& in) {
  const bool file = in.find("file") != nullptr;
  if (!file && (source.size() > kMostSoundBytes || source.size() % sizeof(f32) != 0)) {
    co_return invalid("A recording has 4 bytes a sample and at most {} in all, but there are {}.",
                      kMostSoundBytes, source.size());
  }
  std::vector<f32> samples(
      static_cast<std::size_t>((std::min(source.size(), kMostSoundBytes) + 3) / sizeof(f32)));
  const auto bytes = std::as_writable_bytes(std::span(samples))
                         .first(static_cast<std::size_t>(std::min(source.size(), kMostSoundBytes)));
  CO_TRY(co_await source.read(0, bytes));
  if (file) co_return decode_audio(bytes);
  co_return Clip{.rate = CO_TRY(in.get<u32>("rate")),
                 .channels = CO_TRY(in.get<u32>("channels", 1)),
                 .samples = std::move(samples)};
}

}  // namespace

Task<Result<Medium>> Service::LoadedModel::find_media(const json& part) {
  const auto find = [&](const json& from) -> Result<Medium> {
    const u32 id = TRY(Arguments(from).get<u32>("media"));
    const auto found = media.find(id);
    if (found == media.end()) return fail(ErrorKind::kNotFound, "There is no picture or recording {}.", id);
    return found->second;
  };
  const json* frames = Arguments(part).find("frames");
  if (frames == nullptr || !frames->is_array()) co_return find(part);
  Medium video;
  for (const json& frame : *frames) {
    const u64 seconds = CO_TRY(Arguments(frame).get<u64>("seconds"));
    for (const auto& image : CO_TRY(find(frame)).frames)
      video.frames.push_back({frame_time(seconds, 1), image.tokens});
  }
  co_return video;
}

Answer Service::remember(LoadedModel& model, std::shared_ptr<const SoftTokens> soft) {
  const u32 tokens = soft->count;
  model.media[++next_id_] = {{{"", std::move(soft)}}};
  return {{{"media", next_id_}, {"tokens", tokens}}, {}};
}

Task<Result<Answer>> Service::see(json args, Caller caller) {
  const auto model = CO_TRY(find(models_, args, "model"));
  const Arguments in(args);
  const auto source = CO_TRY(open_part(args, "pixels"));
  const Size size{CO_TRY(in.get<u32>("width")), CO_TRY(in.get<u32>("height"))};
  const u32 budget = CO_TRY(in.get<u32>("budget", 0));
  const Image image = CO_TRY(co_await read_pixels(*source, size));
  const auto turn = co_await model->lock.turn();
  co_return remember(*model, CO_TRY(co_await model->engine->towers().see(image, budget, tell(caller))));
}

Task<Result<Answer>> Service::hear(json args, Caller caller) {
  const auto model = CO_TRY(find(models_, args, "model"));
  const Arguments in(args);
  const auto source = CO_TRY(open_part(args, in.find("file") != nullptr ? "file" : "samples"));
  const Clip clip = CO_TRY(co_await read_sound(*source, in));
  const auto turn = co_await model->lock.turn();
  co_return remember(*model, CO_TRY(co_await model->engine->towers().hear(clip, tell(caller))));
}

Task<Result<Answer>> Service::forget(json args, Caller) {
  const auto model = CO_TRY(find(models_, args, "model"));
  model->media.erase(CO_TRY(Arguments(args).get<u32>("media")));
  co_return Answer{};
}

Task<Result<Answer>> Service::release_encoders(json args, Caller) {
  const auto model = CO_TRY(find(models_, args, "model"));
  const auto turn = co_await model->lock.turn();
  model->engine->towers().release();
  co_return Answer{};
}

}  // namespace bezel

#include "api/media_part.h"

#include <algorithm>

#include "api/arguments.h"
#include "base/quote.h"
#include "media/decode.h"
#include "media/decode_audio.h"
#include "media/video.h"
#include "text/base64.h"

namespace bezel {
namespace {

using nlohmann::json;

constexpr u32 kLowDetail = 70, kHighDetail = 560;
constexpr std::size_t kMostFrames = 256;

// "data:image/png;base64,..." or the bare base64.
Result<std::vector<std::byte>> read_data(std::string_view url) {
  if (url.starts_with("data:")) {
    const std::size_t comma = url.find(',');
    if (comma == std::string_view::npos || !url.substr(0, comma).ends_with(";base64"))
      return invalid("A data: URL must have the form data:TYPE;base64,DATA.");
    return decode_base64(url.substr(comma + 1));
  }
  if (url.find("://") != std::string_view::npos) {
    return fail(ErrorKind::kUnsupported,
                "{} is not fetched: nothing leaves this machine. Give the file itself as a data: URL.",
                quote(url.substr(0, 80)));
  }
  return decode_base64(url);
}

// The text below `key`: itself, or the member `name` of an object.
Result<std::string> text_below(const json& part, const char* key, const char* name) {
  const json* value = Arguments(part).find(key);
  if (value == nullptr) return invalid("A part of type '{}' has no '{}'.", part.value("type", ""), key);
  if (value->is_string()) return value->get<std::string>();
  return Arguments(*value).get<std::string>(name);
}

Task<Result<Medium>> read_picture(Towers& towers, const json& part, const Progress& progress) {
  const char* key = Arguments(part).find("image") != nullptr ? "image" : "image_url";
  const Image image = CO_TRY(decode_image(CO_TRY(read_data(CO_TRY(text_below(part, key, "url"))))));
  const u32 budget = CO_TRY(token_budget(part));
  co_return Medium{{{"", CO_TRY(co_await towers.see(image, budget, progress))}}};
}

Task<Result<Medium>> read_sound(Towers& towers, const json& part, const Progress& progress) {
  const char* key = Arguments(part).find("input_audio") != nullptr ? "input_audio" : "audio_url";
  const char* name = Arguments(part).find("input_audio") != nullptr ? "data" : "url";
  const Clip clip = CO_TRY(decode_audio(CO_TRY(read_data(CO_TRY(text_below(part, key, name))))));
  co_return Medium{{{"", CO_TRY(co_await towers.hear(clip, progress))}}};
}

Task<Result<Medium>> read_video(Towers& towers, const json& part, const Progress& progress) {
  const json* video = Arguments(part).find("video");
  const json* frames = video == nullptr ? nullptr : Arguments(*video).find("frames");
  if (frames == nullptr || !frames->is_array() || frames->empty())
    co_return invalid("A part of type 'video' needs 'video': {{'frames': [...]}}.");
  if (frames->size() > kMostFrames)
    co_return invalid("A video has {} frames; at most {} are taken.", frames->size(), kMostFrames);
  u32 budget = CO_TRY(token_budget(part));
  if (budget == 0) budget = kVideoBudget;
  Medium out;
  for (const json& frame : *frames) {
    const Arguments in(frame);
    const Image image = CO_TRY(decode_image(CO_TRY(read_data(CO_TRY(in.get<std::string>("url"))))));
    const u64 seconds = static_cast<u64>(std::clamp(CO_TRY(in.get<f64>("seconds")), 0.0, 1e6));
    out.frames.push_back({frame_time(seconds, 1), CO_TRY(co_await towers.see(image, budget, progress))});
  }
  co_return out;
}

}  // namespace

Result<u32> token_budget(const json& part) {
  for (const char* key : {"image_url", "image", "video"}) {
    const json* value = Arguments(part).find(key);
    if (value == nullptr || !value->is_object()) continue;
    if (const auto budget = TRY(Arguments(*value).optional<u32>("token_budget"))) return *budget;
    const auto detail = TRY(Arguments(*value).get<std::string>("detail", "auto"));
    if (detail == "low") return kLowDetail;
    if (detail == "high") return kHighDetail;
    if (detail != "auto") return invalid("'detail' is {}; it must be low, auto or high.", quote(detail));
  }
  return Arguments(part).get<u32>("token_budget", 0);
}

Task<Result<Medium>> read_inline_media(Towers& towers, const json& part, Progress progress) {
  const std::string type = CO_TRY(Arguments(part).get<std::string>("type"));
  if (type.find("audio") != std::string::npos) co_return co_await read_sound(towers, part, progress);
  if (type.find("video") != std::string::npos) co_return co_await read_video(towers, part, progress);
  co_return co_await read_picture(towers, part, progress);
}

}  // namespace bezel

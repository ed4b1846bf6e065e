// The pictures, recordings and videos of a chat's messages.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>

#include "run/engine.h"

namespace bezel {

// Makes soft tokens of one part of a message. Where the media come from is the host's affair.
using ReadMedia = std::function<Task<Result<Medium>>(const nlohmann::json& part)>;

// Parts that carry their file, in OpenAI's shape:
//   {"type": "image_url", "image_url": {"url": "data:...", "detail": "low", "auto" or "high"}}
//   {"type": "input_audio", "input_audio": {"data": base64}}
//   {"type": "video", "video": {"frames": [{"url": "data:...", "seconds": 1.5}, ...]}}
// and, beside `url`, `token_budget`: the most soft tokens of the picture. Nothing is fetched from elsewhere.
Task<Result<Medium>> read_inline_media(Towers& towers, const nlohmann::json& part, Progress progress);

// The number of soft tokens that a part asks for; 0: none in particular.
Result<u32> token_budget(const nlohmann::json& part);

}  // namespace bezel

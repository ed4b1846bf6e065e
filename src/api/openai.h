// Chat completions in OpenAI's shape: a request object in, chunks while it is answered, a completion at the
// end. The native server and the host of the wasm module share it.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/media_part.h"
#include "run/generate.h"

namespace bezel {

// A request that was read, checked and rendered. What is left is to run it.
struct ChatRequest {
  Prompt prompt;
  GenerateOptions options;                // without callbacks; `parsing.tools` points to `tools`
  std::unique_ptr<nlohmann::json> tools;  // null: none
  bool stream = false;
  bool include_usage = false;  // a last chunk with the usage
  bool thinking = false;
  std::chrono::steady_clock::time_point received = std::chrono::steady_clock::now();
};

// Fields of another type, and values that are not supported, are errors that name the field; unknown fields
// are ignored. `system` is the instruction for chats that bring none of their own; it may be empty.
//
// Beside OpenAI's fields: `top_k`, `min_p`, `repetition_penalty`, `continue_final_message` (the last message
// is the beginning of the answer), `thinking` (true, false; it wins over `reasoning_effort`).
//
// `read_media` makes soft tokens of the messages' pictures and recordings; without it they are errors.
Task<Result<ChatRequest>> read_chat_request(Engine& engine, const nlohmann::json& request,
                                            std::string system = {}, ReadMedia read_media = {});

struct ChatCallbacks {
  // Called for each `chat.completion.chunk` where the request asks for a stream; false stops.
  std::function<bool(const nlohmann::json& chunk)> chunk;
  std::function<bool()> go_on;  // asked between tokens and passes; false stops
};

// The `chat.completion`. Beside OpenAI's fields: `message.reasoning_content`, and `timings`. An answer that
// the caller stops is kCancelled; its tokens stay in the session.
Task<Result<nlohmann::json>> complete_chat(Engine& engine, Session& session, ChatRequest request,
                                           std::string model, ChatCallbacks callbacks);

const char* name_of(FinishReason reason);  // "stop", "length", "tool_calls"

// {"error": {"message", "type", "param", "code"}}; `code` may be null.
nlohmann::json openai_error(const Error& error, const char* code = nullptr);

}  // namespace bezel

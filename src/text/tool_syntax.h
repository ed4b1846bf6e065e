// The tool language of Gemma 4: how tools are declared to the model, how values are written, and how a call
// the model wrote becomes JSON again. Strings stand raw between two `<|"|>` tokens; nothing is escaped.
#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/chat_item.h"

namespace bezel {

// Deeper values are refused, in requests and in the model's output.
inline constexpr int kMaxToolNesting = 64;

// `declaration:NAME{...}` of one entry of an OpenAI `tools` list; `where` names the entry in errors.
Status write_declaration(const nlohmann::json& tool, std::string_view where, ItemWriter& out);

enum class KeyStyle { kBare, kQuoted };

Status write_value(const nlohmann::json& value, KeyStyle keys, std::string_view where, ItemWriter& out);

// `{key:value,...}` with sorted bare keys, as calls and responses are written.
Status write_arguments(const nlohmann::json& object, std::string_view where, ItemWriter& out);

struct ToolCall {
  std::string name;
  std::string arguments;  // a JSON object
};

struct CallOptions {
  const nlohmann::json* tools = nullptr;  // the request's tools, to know which arguments are strings
  // Models drop a quote or a brace at times; repairing the end of a call that was cut off by a token limit
  // would invent an argument, so the caller can forbid it.
  bool repair = true;
};

// Reads what stands between `<|tool_call>` and `<tool_call|>`.
Result<ToolCall> parse_call(std::span<const ChatItem> body, const CallOptions& options);

}  // namespace bezel

// Gemma 4's chat format: OpenAI-shaped messages and tools become the prompt the model was trained on.
#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/chat_item.h"

namespace bezel {

// The two published templates differ in one place: with thinking off, the large one opens the model's turn
// with an empty thought.
enum class Template { kSmall, kLarge };

struct ChatOptions {
  Template form = Template::kSmall;
  bool thinking = false;
  bool add_generation_prompt = true;
  bool preserve_thinking = false;  // keep the reasoning of earlier rounds where they called tools
  // The last message, an assistant's, is left open so that the model goes on writing it. Trailing white space
  // of its text is kept; reasoning without text leaves the thought open. No generation prompt is added.
  bool continue_last = false;
  const nlohmann::json* tools = nullptr;  // an OpenAI `tools` list, or null
};

// Messages hold role, content (text or a list of parts), reasoning / reasoning_content / thinking,
// tool_calls, tool_responses, tool_call_id, name. Media parts become one placeholder token each, in order. A
// tool message belongs to the assistant message it follows; after any other it is left out, as in the
// published template.
// Where `media` is given, it gets these parts, which lie within `messages`.
Result<std::vector<ChatItem>> render_chat(const nlohmann::json& messages, const ChatOptions& options,
                                          std::vector<const nlohmann::json*>* media = nullptr);

// Whether the model's first token will be part of a thought whose opening is in the prompt.
bool ends_in_thought(std::span<const ChatItem> prompt);

// What is known about a model's template; any text may be empty.
struct TemplateHints {
  std::string_view renderer;        // "gemma4", "gemma4-small", "gemma4-large"
  std::string_view model_name;      // "gemma4:e4b"
  std::string_view parameter_size;  // "25.8B"
  bool has_per_layer_embeddings = false;
};

Template choose_template(const TemplateHints& hints);

}  // namespace bezel

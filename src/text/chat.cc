#include "text/chat.h"

#include <optional>
#include <string>
#include <unordered_map>

#include "base/format_text.h"
#include "text/json_fields.h"
#include "text/tool_syntax.h"
#include "text/whitespace.h"

namespace bezel {
namespace {

using nlohmann::json;

enum class Role { kSystem, kUser, kAssistant, kTool };

std::optional<Role> role_named(std::string_view name) {
  if (name == "system" || name == "developer") return Role::kSystem;
  if (name == "user") return Role::kUser;
  if (name == "assistant" || name == "model") return Role::kAssistant;
  if (name == "tool") return Role::kTool;
  return std::nullopt;
}

std::string_view turn_header(Role role) {
  switch (role) {
    case Role::kSystem:
      return "system\n";
    case Role::kUser:
      return "user\n";
    default:
      return "model\n";
  }
}

// Answers of thinking models may be stored with their thoughts; the template shows the model only the rest.
std::string without_thoughts(std::string_view text) {
  std::string kept;
  while (true) {
    const std::size_t end = text.find(marker::kChannelEnd);
    const std::string_view part = text.substr(0, end);
    kept += part.substr(0, part.find(marker::kChannel));
    if (end == std::string_view::npos) return kept;
    text.remove_prefix(end + marker::kChannelEnd.size());
  }
}

// The placeholder of a media part; empty for text.
Result<std::string_view> part_placeholder(const json& part, std::string_view where) {
  if (!part.is_object()) return wrong_type(where, "an object", part);
  const std::string_view type = TRY(string_member(part, "type", where));
  if (type == "text" || type == "input_text") return std::string_view();
  if (type == "image" || type == "image_url" || type == "input_image") return marker::kImage;
  if (type == "audio" || type == "audio_url" || type == "input_audio") return marker::kAudio;
  if (type == "video" || type == "video_url" || type == "input_video") return marker::kVideo;
  return invalid("{}.type is '{}'; it must be text, image, audio or video.", where, type);
}

class Renderer {
 public:
  Renderer(const json& messages, const ChatOptions& options) : messages_(messages), options_(options) {}

  Result<std::vector<ChatItem>> render(std::vector<const json*>* media) {
    TRY(check_messages());
    out_.special(marker::kBos);
    TRY(system_turn());
    std::optional<std::size_t> last_user;
    for (const std::size_t i : turns_) {
      if (roles_[i] == Role::kUser) last_user = i;
    }
    for (std::size_t k = 0; k < turns_.size(); ++k) {
      TRY(message(k, !last_user || turns_[k] > *last_user));
    }
    if (options_.add_generation_prompt && !options_.continue_last) generation_prompt();
    if (media != nullptr) *media = out_.media();
    return out_.take();
  }

 private:
  // What the last message left behind decides how the model's answer begins.
  enum class Ending { kClosed, kCallsPending, kResults, kResultsClosed };

  Status check_messages() {
    if (!messages_.is_array()) return wrong_type("messages", "a list", messages_);
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      const json& message = messages_[i];
      if (!message.is_object()) return wrong_type(path(i), "an object", message);
      const std::string_view name = TRY(string_member(message, "role", path(i)));
      const std::optional<Role> role = role_named(name);
      if (!role) {
        return invalid("{}.role is '{}'; it must be system, developer, user, assistant or tool.", path(i),
                       name);
      }
      roles_.push_back(*role);
      if (*role != Role::kTool) turns_.push_back(i);
    }
    if (options_.continue_last) {
      if (roles_.empty() || roles_.back() != Role::kAssistant) {
        return invalid("The last message cannot be continued: it is not an assistant message.");
      }
    }
    return {};
  }

  static std::string path(std::size_t i) { return format_text("messages[{}]", i); }

  void open_turn(Role role) {
    out_.special(marker::kTurn);
    out_.text(turn_header(role));
  }
  void close_turn() {
    out_.special(marker::kTurnEnd);
    out_.text("\n");
  }
  void open_thought() {
    out_.special(marker::kChannel);
    out_.text("thought\n");
  }
  void empty_thought() {
    if (options_.form != Template::kLarge || options_.thinking) return;
    open_thought();
    out_.special(marker::kChannelEnd);
  }

  Status system_turn() {
    const json* tools = options_.tools;
    if (tools != nullptr && !tools->is_null() && !tools->is_array())
      return wrong_type("tools", "a list", *tools);
    const bool has_tools = tools != nullptr && !tools->empty();
    const bool has_message = !roles_.empty() && roles_[0] == Role::kSystem;
    if (!options_.thinking && !has_tools && !has_message) return {};

    open_turn(Role::kSystem);
    if (options_.thinking) {
      out_.special(marker::kThink);
      out_.text("\n");
    }
    if (has_message) {
      TRY(system_text(messages_[0]));
      turns_.erase(turns_.begin());
    }
    for (std::size_t i = 0; has_tools && i < tools->size(); ++i) {
      out_.special(marker::kTool);
      TRY(write_declaration((*tools)[i], format_text("tools[{}]", i), out_));
      out_.special(marker::kToolEnd);
    }
    close_turn();
    return {};
  }

  Status system_text(const json& message) {
    const json* content = member(message, "content");
    if (content == nullptr) return {};
    if (!content->is_array()) {
      out_.text(trim(TRY(as_string(*content, "messages[0].content"))));
      return {};
    }
    for (std::size_t i = 0; i < content->size(); ++i) {
      const std::string where = format_text("messages[0].content[{}]", i);
      const json& part = (*content)[i];
      if (!TRY(part_placeholder(part, where)).empty())
        return invalid("{} is not text; a system message holds text only.", where);
      out_.text(trim(TRY(string_member(part, "text", where))));
      out_.text(" ");
    }
    return {};
  }

  Status message(std::size_t k, bool after_last_user) {
    const std::size_t i = turns_[k];
    const json& message = messages_[i];
    const Role role = roles_[i];
    const bool assistant = role == Role::kAssistant;
    const bool last = k + 1 == turns_.size();
    const bool left_open = options_.continue_last && last;
    const bool opens = !assistant || k == 0 || roles_[turns_[k - 1]] != Role::kAssistant;
    if (opens) open_turn(role);

    const json* calls = assistant ? TRY(list_member(message, "tool_calls", path(i))) : nullptr;
    const std::string_view thought = assistant ? TRY(reasoning(i)) : std::string_view();
    if (!thought.empty() && (after_last_user || (options_.preserve_thinking && calls != nullptr))) {
      open_thought();
      out_.text(thought);
      // A thought that is all there is was cut off; the model goes on thinking.
      if (left_open && calls == nullptr && !TRY(has_content(i))) return {};
      out_.text("\n");
      out_.special(marker::kChannelEnd);
    } else if (left_open && opens) {
      empty_thought();  // as in the prompt that this message was begun with
    }
    if (calls != nullptr) TRY(tool_calls(*calls, i));
    const bool results = assistant && TRY(tool_results(calls, i, last ? messages_.size() : turns_[k + 1]));
    const bool content_written = TRY(content(i, role, left_open));

    ending_ = Ending::kClosed;
    if (calls != nullptr && !results) {
      if (left_open) return invalid("{} cannot be continued: its tool calls have no results.", path(i));
      out_.special(marker::kResponse);
      ending_ = Ending::kCallsPending;
    } else if (left_open || (assistant && !last && roles_[turns_[k + 1]] == Role::kAssistant)) {
      // The turn goes on.
    } else if (results && !content_written && last) {
      ending_ = Ending::kResults;
    } else {
      close_turn();
      if (results) ending_ = Ending::kResultsClosed;
    }
    return {};
  }

  Result<std::string_view> reasoning(std::size_t i) {
    for (const std::string_view key : {"reasoning", "reasoning_content", "thinking"}) {
      const std::string_view text = TRY(string_member(messages_[i], key, path(i)));
      if (!text.empty()) return text;
    }
    return std::string_view();
  }

  Status tool_calls(const json& calls, std::size_t i) {
    for (std::size_t c = 0; c < calls.size(); ++c) {
      const std::string where = format_text("{}.tool_calls[{}]", path(i), c);
      if (!calls[c].is_object()) return wrong_type(where, "an object", calls[c]);
      const json* function = TRY(object_member(calls[c], "function", where));
      if (function == nullptr) return invalid("{} has no 'function' object.", where);
      const std::string_view name = TRY(string_member(*function, "name", where + ".function"));
      if (name.empty()) return invalid("{}.function has no name.", where);
      out_.special(marker::kCall);
      out_.text("call:");
      out_.text(name);
      TRY(call_arguments(*function, where + ".function.arguments"));
      out_.special(marker::kCallEnd);
    }
    return {};
  }

  // OpenAI sends arguments as JSON text, Ollama as an object.
  Status call_arguments(const json& function, const std::string& where) {
    const json* arguments = member(function, "arguments");
    if (arguments == nullptr) return write_arguments(json::object(), where, out_);
    if (!arguments->is_string()) return write_arguments(*arguments, where, out_);
    const std::string_view text = trim(*arguments->get_ptr<const std::string*>());
    json parsed = text.empty() ? json() : json::parse(text, nullptr, false);
    if (parsed.is_discarded()) return invalid("{} is text that is not JSON.", where);
    if (parsed.is_null()) parsed = json::object();
    return write_arguments(parsed, where, out_);
  }

  // The results embedded in message i, else those of the tool messages up to `end`; whether there were any.
  Result<bool> tool_results(const json* calls, std::size_t i, std::size_t end) {
    const json* embedded = TRY(list_member(messages_[i], "tool_responses", path(i)));
    if (embedded != nullptr) {
      for (std::size_t r = 0; r < embedded->size(); ++r) {
        const std::string where = format_text("{}.tool_responses[{}]", path(i), r);
        const json& response = (*embedded)[r];
        if (!response.is_object()) return wrong_type(where, "an object", response);
        const std::string_view name = TRY(string_member(response, "name", where));
        const json* value = member(response, "response");
        // Not `value ? *value : null`: that would copy the value, recursively, before its depth is checked.
        static const json null;
        TRY(tool_result(name, value == nullptr ? null : *value, where + ".response"));
      }
      return true;
    }
    if (calls == nullptr || i + 1 >= end) return false;

    std::unordered_map<std::string_view, std::string_view> names;
    for (std::size_t c = 0; c < calls->size(); ++c) {
      const json& call = (*calls)[c];
      const std::string_view id =
          TRY(string_member(call, "id", format_text("{}.tool_calls[{}]", path(i), c)));
      if (!id.empty()) names[id] = TRY(string_member(*member(call, "function"), "name", path(i)));
    }
    for (std::size_t m = i + 1; m < end; ++m) {
      const json& message = messages_[m];
      std::string_view name = TRY(string_member(message, "name", path(m)));
      if (name.empty()) name = TRY(string_member(message, "tool_name", path(m)));
      const auto named = names.find(TRY(string_member(message, "tool_call_id", path(m))));
      if (named != names.end()) name = named->second;
      const json* value = member(message, "content");
      const std::string where = path(m) + ".content";
      if (value != nullptr && !value->is_string() && !value->is_array() && !value->is_object()) {
        return wrong_type(where, "text, a list of parts or an object", *value);
      }
      if (value != nullptr && value->is_array()) {
        TRY(tool_result_parts(name, *value, where));
      } else {
        static const json no_text = "";
        TRY(tool_result(name, value == nullptr ? no_text : *value, where));
      }
    }
    return true;
  }

  Status tool_result(std::string_view name, const json& value, std::string_view where) {
    out_.special(marker::kResponse);
    out_.text("response:");
    out_.text(name.empty() ? "unknown" : name);
    if (value.is_object()) {
      TRY(write_arguments(value, where, out_));
    } else {
      out_.text("{value:");
      TRY(write_value(value, KeyStyle::kBare, where, out_));
      out_.text("}");
    }
    out_.special(marker::kResponseEnd);
    return {};
  }

  Status tool_result_parts(std::string_view name, const json& parts, std::string_view where) {
    std::string text;
    std::vector<std::pair<std::string_view, const json*>> media;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const std::string part_path = format_text("{}[{}]", where, p);
      const std::string_view placeholder = TRY(part_placeholder(parts[p], part_path));
      if (placeholder.empty()) {
        text += TRY(string_member(parts[p], "text", part_path));
      } else {
        media.emplace_back(placeholder, &parts[p]);
      }
    }
    TRY(tool_result(name, json(std::move(text)), where));
    for (const auto& [placeholder, part] : media) out_.media(placeholder, *part);
    return {};
  }

  // Whether message i has any content, without writing it.
  Result<bool> has_content(std::size_t i) {
    ItemWriter kept = std::exchange(out_, ItemWriter());
    auto written = content(i, roles_[i], false);
    out_ = std::move(kept);
    return written;
  }

  // Writes the content of message i; whether there was any.
  Result<bool> content(std::size_t i, Role role, bool keep_tail) {
    const json* content = member(messages_[i], "content");
    if (content == nullptr) return false;
    const std::string where = path(i) + ".content";
    if (content->is_string()) return content_text(*content->get_ptr<const std::string*>(), role, keep_tail);
    if (!content->is_array()) return wrong_type(where, "text or a list of parts", *content);
    bool any = false;
    for (std::size_t p = 0; p < content->size(); ++p) {
      const json& part = (*content)[p];
      const std::string part_path = format_text("{}[{}]", where, p);
      const std::string_view placeholder = TRY(part_placeholder(part, part_path));
      if (placeholder.empty()) {
        const std::string_view text = TRY(string_member(part, "text", part_path));
        any |= content_text(text, role, keep_tail && p + 1 == content->size());
      } else {
        out_.media(placeholder, part);
        any = true;
      }
    }
    return any;
  }

  bool content_text(std::string_view text, Role role, bool keep_tail) {
    std::string stripped;
    if (role == Role::kAssistant) {
      stripped = without_thoughts(text);
      text = stripped;
    }
    text = keep_tail ? trim_left(text) : trim(text);
    out_.text(text);
    return !text.empty();
  }

  void generation_prompt() {
    switch (ending_) {
      case Ending::kClosed:
        open_turn(Role::kAssistant);
        empty_thought();
        break;
      case Ending::kResultsClosed:
        // The published template adds nothing here and leaves the model outside of any turn.
        open_turn(Role::kAssistant);
        break;
      case Ending::kResults:
        if (options_.thinking) open_thought();
        break;
      case Ending::kCallsPending:
        break;
    }
  }

  const json& messages_;
  const ChatOptions& options_;
  std::vector<Role> roles_;         // of all messages
  std::vector<std::size_t> turns_;  // the messages that are not tool results
  Ending ending_ = Ending::kClosed;
  ItemWriter out_;
};

}  // namespace

Result<std::vector<ChatItem>> render_chat(const json& messages, const ChatOptions& options,
                                          std::vector<const json*>* media) {
  return Renderer(messages, options).render(media);
}

bool ends_in_thought(std::span<const ChatItem> prompt) {
  for (std::size_t i = prompt.size(); i-- > 0;) {
    if (prompt[i].special) return prompt[i].text == marker::kChannel;
  }
  return false;
}

}  // namespace bezel

// The reading half of tool_syntax.h: recursive descent over the call's text, writing JSON as it goes.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "text/json_fields.h"
#include "text/tool_syntax.h"
#include "text/whitespace.h"

namespace bezel {
namespace {

using nlohmann::json;

// Stands for the quote token in the flattened text. It occurs in no UTF-8 text.
constexpr char kQuoteByte = '\xff';

std::string flatten(std::span<const ChatItem> body) {
  std::string text;
  for (const ChatItem& item : body) {
    if (item.special && item.text == marker::kQuote) {
      text += kQuoteByte;
    } else {
      for (const char c : item.text) {
        if (c == kQuoteByte) {
          text += "\ufffd";
        } else {
          text += c;
        }
      }
    }
  }
  return text;
}

std::string json_string(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (c == kQuoteByte) {
      plain += marker::kQuote;  // a stray quote inside a repaired value
    } else {
      plain += c;
    }
  }
  return json(std::move(plain)).dump(-1, ' ', false, json::error_handler_t::replace);
}

// The schema of the called function's arguments, or nullptr. Tools were checked when they were rendered;
// here anything unexpected just means that nothing is known.
const json* argument_schemas(const json* tools, std::string_view name) {
  if (tools == nullptr || !tools->is_array()) return nullptr;
  for (const json& tool : *tools) {
    const json* function = tool.is_object() ? member(tool, "function") : nullptr;
    if (function == nullptr || !function->is_object()) continue;
    const json* own_name = member(*function, "name");
    if (own_name == nullptr || !own_name->is_string() || *own_name->get_ptr<const std::string*>() != name)
      continue;
    const json* parameters = member(*function, "parameters");
    const json* properties =
        parameters != nullptr && parameters->is_object() ? member(*parameters, "properties") : nullptr;
    return properties != nullptr && properties->is_object() ? properties : nullptr;
  }
  return nullptr;
}

class ArgumentParser {
 public:
  ArgumentParser(std::string_view text, const json* schemas, bool repair)
      : rest_(text), schemas_(schemas), repair_(repair) {}

  Result<std::string> parse() {
    TRY(object());
    skip_space();
    if (!rest_.empty()) return invalid("A tool call goes on after its closing brace.");
    return std::move(out_);
  }

 private:
  void skip_space() {
    while (!rest_.empty() && is_ascii_space(rest_.front())) rest_.remove_prefix(1);
  }
  bool accept(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string_view take(std::size_t length) {
    const std::string_view taken = rest_.substr(0, length);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  Status object() {
    return container('{', '}', [this]() -> Status {
      const std::string_view name = TRY(key());
      out_ += json_string(name);
      out_ += ':';
      skip_space();
      if (!accept(':')) return invalid("The argument '{}' of a tool call has no value.", name);
      return value(name);
    });
  }
  Status list() {
    return container('[', ']', [this] { return value({}); });
  }

  template <class Element>
  Status container(char open, char close, Element element) {
    if (!accept(open)) return invalid("The arguments of a tool call are not an object.");
    if (open_.size() >= kMaxToolNesting) {
      return invalid("The arguments of a tool call are nested more than {} levels deep.", kMaxToolNesting);
    }
    open_ += close;
    out_ += open;
    for (bool first = true;; first = false) {
      skip_space();
      if (accept(close)) break;
      if (rest_.empty() && repair_) break;  // the missing closing bracket
      if (!first) {
        if (!accept(',')) return invalid("A tool call has no comma between two of its arguments.");
        out_ += ',';
        skip_space();
      }
      TRY(element());
    }
    open_.pop_back();
    out_ += close;
    return {};
  }

  // Bare up to the colon; quoted keys are not written by the template, but models imitate JSON.
  Result<std::string_view> key() {
    if (accept(kQuoteByte)) return quoted(kQuoteByte);
    if (accept('"')) return quoted('"');
    const std::string_view name = trim_right(rest_.substr(0, rest_.find_first_of(":}")));
    if (name.empty()) return invalid("A tool call has an argument without a name.");
    return take(name.size());
  }

  Result<std::string_view> quoted(char quote) {
    const std::size_t end = rest_.find(quote);
    if (end == std::string_view::npos) return invalid("A tool call has a name whose quotes are not closed.");
    const std::string_view name = take(end);
    rest_.remove_prefix(1);
    return name;
  }

  Status value(std::string_view name) {
    skip_space();
    if (rest_.starts_with('{')) return object();
    if (rest_.starts_with('[')) return list();
    if (rest_.starts_with(kQuoteByte)) return string_value();
    if (rest_.starts_with('"') && json_value()) return {};
    if (literal()) return {};
    if (repair_ && rest_.starts_with('\'') && single_quoted()) return {};
    if (repair_ && open_.size() == 1 && is_string_argument(name)) {
      out_ += json_string(take(unquoted_length()));
      return {};
    }
    return invalid("The argument '{}' of a tool call is not a value.", name);
  }

  Status string_value() {
    rest_.remove_prefix(1);
    std::size_t end = rest_.find(kQuoteByte);
    const bool closed = end != std::string_view::npos;
    if (!closed) {
      if (!repair_) return invalid("A tool call has a string that is not closed.");
      end = length_before_closers();
    }
    out_ += json_string(take(end));
    if (closed) rest_.remove_prefix(1);
    return {};
  }

  // How much text is left before the brackets that close everything open at the very end.
  std::size_t length_before_closers() const {
    std::string_view text = trim_right(rest_);
    const std::size_t whole = text.size();
    for (const char close : open_) {
      if (!text.ends_with(close)) break;
      text = trim_right(text.substr(0, text.size() - 1));
    }
    return text.size() == whole ? rest_.size() : text.size();
  }

  // Whether `text` begins what may follow a value: the end, a comma or a closing bracket.
  static bool ends_value(std::string_view text) {
    text = trim_left(text);
    return text.empty() || text.front() == ',' || text.front() == '}' || text.front() == ']';
  }

  // An ordinary JSON string.
  bool json_value() {
    std::size_t end = 1;
    while (end < rest_.size() && rest_[end] != '"') end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size() || !ends_value(rest_.substr(end + 1))) return false;
    const std::string_view text = rest_.substr(0, end + 1);
    if (text.contains(kQuoteByte) || !json::accept(text)) return false;
    out_ += take(text.size());
    return true;
  }

  // A number, true, false or null.
  bool literal() {
    const std::size_t end = std::min(rest_.find_first_of(",}] \t\r\n"), rest_.size());
    const std::string_view text = rest_.substr(0, end);
    if (text.empty() || text.front() == '"' || !ends_value(rest_.substr(end))) return false;
    if (!json::accept(text)) return false;
    out_ += take(end);
    return true;
  }

  // An apostrophe inside the value does not end it: only one that a comma or bracket follows does.
  bool single_quoted() {
    for (std::size_t end = rest_.find('\'', 1); end != std::string_view::npos;
         end = rest_.find('\'', end + 1)) {
      if (!ends_value(rest_.substr(end + 1))) continue;
      out_ += json_string(rest_.substr(1, end - 1));
      rest_.remove_prefix(end + 1);
      return true;
    }
    return false;
  }

  bool is_string_argument(std::string_view name) const {
    const json* schema = schemas_ == nullptr ? nullptr : member(*schemas_, name);
    const json* type = schema != nullptr && schema->is_object() ? member(*schema, "type") : nullptr;
    return type != nullptr && *type == "string";
  }

  // An unquoted string runs to the next argument the function has, else to the closing brace.
  std::size_t unquoted_length() const {
    for (std::size_t comma = rest_.find(','); comma != std::string_view::npos;
         comma = rest_.find(',', comma + 1)) {
      const std::string_view next = trim_left(rest_.substr(comma + 1));
      const std::size_t colon = next.find_first_of(":,");
      if (colon == std::string_view::npos || next[colon] != ':') continue;
      if (member(*schemas_, trim_right(next.substr(0, colon))) != nullptr) return comma;
    }
    return length_before_closers();
  }

  std::string_view rest_;
  const json* schemas_;
  bool repair_;
  std::string open_;  // the closing brackets still to come, innermost last
  std::string out_;
};

}  // namespace

Result<ToolCall> parse_call(std::span<const ChatItem> body, const CallOptions& options) {
  const std::string flat = flatten(body);
  std::string_view text = trim(flat);
  constexpr std::string_view kPrefix = "call:";
  if (!text.starts_with(kPrefix)) return invalid("A tool call does not begin with 'call:'.");
  text.remove_prefix(kPrefix.size());
  const std::size_t brace = text.find('{');
  if (brace == std::string_view::npos) return invalid("A tool call has no arguments.");
  ToolCall call;
  call.name = trim(text.substr(0, brace));
  if (call.name.empty() || call.name.contains(kQuoteByte)) return invalid("A tool call has no name.");
  const json* schemas = argument_schemas(options.tools, call.name);
  call.arguments = TRY(ArgumentParser(text.substr(brace), schemas, options.repair).parse());
  return call;
}

}  // namespace bezel

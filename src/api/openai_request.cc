// Reads a chat completion's request.
#include <algorithm>

#include "api/arguments.h"
#include "api/openai.h"
#include "api/sampling_request.h"
#include "base/quote.h"

namespace bezel {
namespace {

using nlohmann::json;

Result<std::vector<std::string>> read_stops(const Arguments& in) {
  const json* stop = in.find("stop");
  std::vector<std::string> stops;
  if (stop != nullptr && stop->is_string()) {
    stops.push_back(stop->get<std::string>());
  } else {
    stops = TRY(in.list<std::string>("stop"));
  }
  if (std::ranges::contains(stops, "")) return invalid("'stop' holds an empty string.");
  return stops;
}

// 0: until the context is full.
Result<u32> read_max_tokens(const Arguments& in) {
  for (const char* key : {"max_completion_tokens", "max_tokens"}) {
    const auto most = TRY(in.optional<u32>(key));
    if (most && *most == 0) return invalid("'{}' is 0; it must be at least 1.", key);
    if (most) return *most;
  }
  return 0;
}

Result<bool> read_thinking(const Arguments& in) {
  const auto effort = TRY(in.optional<std::string>("reasoning_effort"));
  bool thinking = false;
  if (effort) {
    const auto is = [&](const char* name) { return *effort == name; };
    thinking = is("low") || is("medium") || is("high") || is("xhigh");
    if (!thinking && !is("none") && !is("minimal")) {
      return fail(ErrorKind::kUnsupported,
                  "'reasoning_effort' is {}; it must be none, minimal, low, medium, high or xhigh.",
                  quote(*effort));
    }
  }
  return in.get("thinking", thinking);
}

// The tools that the model may use, or null.
Result<std::unique_ptr<json>> read_tools(const Arguments& in) {
  const json* tools = in.find("tools");
  if (tools != nullptr && !tools->is_array()) return invalid("'tools' must be a list.");
  if (const json* choice = in.find("tool_choice")) {
    if (*choice == "none") return nullptr;
    if (*choice != "auto") {
      return fail(ErrorKind::kUnsupported,
                  "'tool_choice' must be \"auto\" or \"none\": a call cannot be forced.");
    }
  }
  if (tools == nullptr || tools->empty()) return nullptr;
  return std::make_unique<json>(*tools);
}

Status refuse_unsupported(const Arguments& in) {
  const auto count = TRY(in.optional<u32>("n"));
  if (count && *count != 1) {
    return fail(ErrorKind::kUnsupported, "'n' is {}; only 1 answer to a request is supported.", *count);
  }
  if (const json* format = in.find("response_format")) {
    if (!format->is_object()) return invalid("'response_format' must be an object.");
    const auto type = TRY(Arguments(*format).get<std::string>("type"));
    if (type != "text") {
      return fail(ErrorKind::kUnsupported, "'response_format' of type {} is not supported; only \"text\" is.",
                  quote(type));
    }
  }
  return {};
}

Result<json> read_messages(const Arguments& in, const std::string& system) {
  const json* messages = in.find("messages");
  if (messages == nullptr) return invalid("'messages' is missing.");
  if (!messages->is_array()) return invalid("'messages' must be a list.");
  if (messages->empty()) return invalid("'messages' is empty.");
  json chat = *messages;
  const json* role = Arguments(chat[0]).find("role");
  if (!system.empty() && role != nullptr && *role != "system" && *role != "developer") {
    chat.insert(chat.begin(), json{{"role", "system"}, {"content", system}});
  }
  return chat;
}

}  // namespace

Task<Result<ChatRequest>> read_chat_request(Engine& engine, const json& request, std::string system,
                                            ReadMedia read_media) {
  if (!request.is_object()) co_return invalid("The request must be a JSON object.");
  const Arguments in(request);
  CO_TRY(refuse_unsupported(in));
  ChatRequest out;
  out.stream = CO_TRY(in.get("stream", false));
  if (const json* options = in.find("stream_options")) {
    if (!options->is_object()) co_return invalid("'stream_options' must be an object.");
    out.include_usage = CO_TRY(Arguments(*options).get("include_usage", false));
  }
  out.options.sampling = engine.sampling();
  CO_TRY(read_sampling(in, engine.config().vocab, out.options.sampling));
  out.options.max_tokens = CO_TRY(read_max_tokens(in));
  out.options.stops = CO_TRY(read_stops(in));
  out.thinking = CO_TRY(read_thinking(in));
  out.tools = CO_TRY(read_tools(in));

  const json messages = CO_TRY(read_messages(in, system));
  std::vector<const json*> parts;
  const auto items = CO_TRY(render_chat(messages,
                                        {.form = engine.chat_template(),
                                         .thinking = out.thinking,
                                         .continue_last = CO_TRY(in.get("continue_final_message", false)),
                                         .tools = out.tools.get()},
                                        &parts));
  if (!parts.empty() && !read_media)
    co_return fail(ErrorKind::kUnsupported, "Pictures and recordings are not taken here.");
  std::vector<Medium> media;
  for (const json* part : parts) media.push_back(CO_TRY(co_await read_media(*part)));
  out.prompt = CO_TRY(engine.encode_chat(items, media));
  // Thoughts are always told apart here, and left out where nobody asked for them: log-probabilities must
  // know which tokens were none of the answer's.
  out.options.parsing = {
      .start_in_thought = ends_in_thought(items), .thinking = true, .tools = out.tools.get()};
  co_return out;
}

}  // namespace bezel

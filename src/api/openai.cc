#include "api/openai.h"

#include <algorithm>
#include <random>

#include "base/format_text.h"
#include "text/utf8.h"

namespace bezel {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

std::string new_id(const char* prefix) {
  std::random_device random;
  return format_text("{}{:08x}{:08x}{:08x}", prefix, random(), random(), random());
}

f64 milliseconds(Clock::duration time) { return std::chrono::duration<f64, std::milli>(time).count(); }

// Builds the completion, and the chunks where they are wanted, from what the engine tells.
class Completion {
 public:
  Completion(const Tokenizer& tokenizer, const ChatRequest& request, std::string model, ChatCallbacks& to)
      : tokenizer_(tokenizer),
        thinking_(request.thinking),
        stream_(request.stream && to.chunk),
        include_usage_(request.include_usage),
        logprobs_(request.options.sampling.logprobs.has_value()),
        received_(request.received),
        to_(to) {
    head_ = {{"id", new_id("chatcmpl-")},
             {"created", std::chrono::duration_cast<std::chrono::seconds>(
                             std::chrono::system_clock::now().time_since_epoch())
                             .count()},
             {"model", std::move(model)}};
  }

  void token(const Sample& sample) {
    last_ = Clock::now();
    if (tokens_++ == 0) first_ = last_;
    if (!logprobs_) return;
    // Between control tokens lies a thought, a call or the answer: only the answer's text takes them.
    if (tokenizer_.is_special(sample.token)) {
      waiting_ = json::array();
      return;
    }
    json entry = describe({sample.token, sample.logprob});
    entry["top_logprobs"] = json::array();
    for (const TokenLogprob& other : sample.top) entry["top_logprobs"].push_back(describe(other));
    waiting_.push_back(std::move(entry));
  }

  bool event(const OutputEvent& event) {
    json delta = json::object();
    json chosen = json::array();
    switch (event.kind) {
      case OutputEvent::Kind::kThinking:
        waiting_ = json::array();
        if (!thinking_) return true;
        thought_ += event.text;
        delta["reasoning_content"] = event.text;
        break;
      case OutputEvent::Kind::kText:
      case OutputEvent::Kind::kMalformedCall:  // shown as it is: whoever asked can see what went wrong
        text_ += event.text;
        delta["content"] = event.text;
        std::swap(chosen, waiting_);
        for (const json& entry : chosen) content_logprobs_.push_back(entry);
        break;
      case OutputEvent::Kind::kToolCall: {
        json call{{"id", new_id("call_")},
                  {"type", "function"},
                  {"function", {{"name", event.name}, {"arguments", event.arguments}}}};
        calls_.push_back(call);
        call["index"] = calls_.size() - 1;
        delta["tool_calls"] = json::array({std::move(call)});
        break;
      }
    }
    return send_delta(std::move(delta), nullptr, std::move(chosen));
  }

  json finish(const Reply& reply, Clock::time_point begin) {
    const json reason = name_of(reply.reason);
    const json use = usage(reply), times = timings(reply, begin);
    send_delta(json::object(), reason, json::array(), &times);
    if (include_usage_) {
      json last = chunk();
      last["choices"] = json::array();
      last["usage"] = use;
      send(last);
    }

    json message{{"role", "assistant"}, {"content", text_}};
    if (text_.empty() && !calls_.empty()) message["content"] = nullptr;
    if (!thought_.empty()) message["reasoning_content"] = thought_;
    if (!calls_.empty()) message["tool_calls"] = calls_;
    json whole = head_;
    whole["object"] = "chat.completion";
    whole["choices"] = json::array({{{"index", 0},
                                     {"message", std::move(message)},
                                     {"logprobs", logprobs(content_logprobs_)},
                                     {"finish_reason", reason}}});
    whole["usage"] = use;
    whole["timings"] = times;
    return whole;
  }

 private:
  json describe(const TokenLogprob& token) const {
    std::string bytes, text;
    tokenizer_.decode(token.token, bytes);
    if (bytes.empty()) bytes = tokenizer_.piece(token.token);
    json numbers = json::array();
    for (const char byte : bytes) numbers.push_back(static_cast<u8>(byte));
    Utf8Stream whole;  // a token may be a part of a character
    whole.push(bytes, text);
    whole.finish(text);
    // JSON has no infinity; OpenAI writes this for what cannot be.
    const f32 logprob = std::max(token.logprob, -9999.0F);
    return {{"token", text}, {"logprob", logprob}, {"bytes", std::move(numbers)}};
  }

  json logprobs(json entries) const {
    if (!logprobs_) return nullptr;
    return {{"content", std::move(entries)}};
  }

  json chunk() const {
    json out = head_;
    out["object"] = "chat.completion.chunk";
    if (include_usage_) out["usage"] = nullptr;
    return out;
  }

  bool send_delta(json delta, json reason, json entries, const json* times = nullptr) {
    if (!stream_) return true;
    // The role opens the stream, with the first news: a request that fails before has sent nothing.
    if (!std::exchange(opened_, true) && !send_delta({{"role", "assistant"}, {"content", ""}}, nullptr, {})) {
      return false;
    }
    json out = chunk();
    const bool some = entries.is_array() && !entries.empty();
    out["choices"] = json::array({{{"index", 0},
                                   {"delta", std::move(delta)},
                                   {"logprobs", some ? logprobs(std::move(entries)) : json()},
                                   {"finish_reason", std::move(reason)}}});
    if (times != nullptr) out["timings"] = *times;
    return send(out);
  }

  bool send(const json& chunk) { return !stream_ || to_.chunk(chunk); }

  static json usage(const Reply& reply) {
    return {{"prompt_tokens", reply.prompt_tokens},
            {"completion_tokens", reply.generated_tokens},
            {"total_tokens", reply.prompt_tokens + reply.generated_tokens},
            {"prompt_tokens_details", {{"cached_tokens", reply.reused_tokens}}}};
  }

  // Milliseconds. The first token belongs to reading the prompt, the others to writing.
  json timings(const Reply& reply, Clock::time_point begin) const {
    if (tokens_ == 0) return json::object();
    const f64 prefill = milliseconds(first_ - begin), decode = milliseconds(last_ - first_);
    json out{{"time_to_first_token_ms", milliseconds(first_ - received_)},
             {"prefill_ms", prefill},
             {"decode_ms", decode}};
    if (prefill > 0) {
      out["prefill_tokens_per_second"] = (reply.prompt_tokens - reply.reused_tokens) * 1000 / prefill;
    }
    if (decode > 0) out["decode_tokens_per_second"] = (tokens_ - 1) * 1000 / decode;
    return out;
  }

  const Tokenizer& tokenizer_;
  bool thinking_, stream_, include_usage_, logprobs_;
  Clock::time_point received_, first_, last_;
  ChatCallbacks& to_;
  json head_;
  bool opened_ = false;
  u32 tokens_ = 0;
  std::string text_, thought_;
  json calls_ = json::array();
  json content_logprobs_ = json::array();
  json waiting_ = json::array();  // log-probabilities of tokens whose text has not appeared yet
};

}  // namespace

Task<Result<json>> complete_chat(Engine& engine, Session& session, ChatRequest request, std::string model,
                                 ChatCallbacks callbacks) {
  if (request.prompt.size() >= session.context()) {
    co_return invalid("The messages have {} tokens; with an answer they do not fit the context of {}.",
                      request.prompt.size(), session.context());
  }
  Completion completion(engine.tokenizer(), request, std::move(model), callbacks);
  GenerateOptions options = std::move(request.options);
  options.go_on = callbacks.go_on;
  options.on_token = [&](const Sample& sample) { completion.token(sample); };
  options.on_event = [&](const OutputEvent& event) { return completion.event(event); };
  const auto begin = Clock::now();
  const Reply reply =
      CO_TRY(co_await generate(engine, session, std::move(request.prompt), std::move(options)));
  if (reply.stopped_by_caller) co_return fail(ErrorKind::kCancelled, "The answer was stopped.");
  co_return completion.finish(reply, begin);
}

const char* name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::kLength:
      return "length";
    case FinishReason::kToolCalls:
      return "tool_calls";
    case FinishReason::kStop:
      break;
  }
  return "stop";
}

json openai_error(const Error& error, const char* code) {
  const bool theirs = error.kind == ErrorKind::kInvalid || error.kind == ErrorKind::kUnsupported ||
                      error.kind == ErrorKind::kNotFound;
  return {{"error",
           {{"message", error.message},
            {"type", theirs ? "invalid_request_error" : "server_error"},
            {"param", nullptr},
            {"code", code != nullptr ? json(code) : json()}}}};
}

}  // namespace bezel

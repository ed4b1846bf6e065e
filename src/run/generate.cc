#include "run/generate.h"

#include <algorithm>

#include "text/detokenizer.h"
#include "text/stop.h"

namespace bezel {
namespace {

// What becomes of generated tokens on their way to the caller.
class Output {
 public:
  Output(const Tokenizer& tokenizer, const GenerateOptions& options)
      : tokenizer_(tokenizer),
        detokenizer_(tokenizer),
        parser_(options.parsing),
        stop_(options.stops),
        on_event_(options.on_event) {}

  void push(u32 token) {
    parser_.text(detokenizer_.push(token));
    if (tokenizer_.is_special(token)) parser_.special(tokenizer_.piece(token));
    deliver();
  }

  void finish(bool out_of_tokens) {
    parser_.text(detokenizer_.finish());
    parser_.finish(out_of_tokens);
    deliver();
    OutputEvent rest;
    rest.text = stop_.finish();
    send(rest);
  }

  bool done() const { return stop_.stopped() || parser_.ended() || refused_; }
  bool refused() const { return refused_; }
  FinishReason reason() const { return parser_.finish_reason(); }

 private:
  void deliver() {
    for (OutputEvent& event : parser_.take()) {
      if (event.kind == OutputEvent::Kind::kText) event.text = stop_.push(event.text);
      send(event);
    }
  }

  void send(const OutputEvent& event) {
    const bool call = event.kind == OutputEvent::Kind::kToolCall;
    if (refused_ || !on_event_ || (event.text.empty() && !call)) return;
    if (!on_event_(event)) refused_ = true;
  }

  const Tokenizer& tokenizer_;
  Detokenizer detokenizer_;
  OutputParser parser_;
  StopMatcher stop_;
  const std::function<bool(const OutputEvent&)>& on_event_;
  bool refused_ = false;
};

Result<Sample> next(Sampler& sampler, const Session& session, u32 top) {
  if (top == 0) return sampler.sample(session.logits());
  return sampler.sample(session.candidates().best, session.candidates().log_total);
}

}  // namespace

Task<Result<Reply>> generate(Engine& engine, Session& session, Prompt prompt, GenerateOptions options) {
  Reply reply;
  if (prompt.ids.empty()) co_return invalid("The prompt is empty.");
  reply.prompt_tokens = prompt.size();
  reply.reused_tokens = std::min(common_prefix(session.held(), prompt), reply.prompt_tokens - 1);
  const u32 top = best_enough(options.sampling);
  CO_TRY(co_await session.set_prompt(std::move(prompt), options.go_on, top));

  Sampler sampler(options.sampling);
  Output output(engine.tokenizer(), options);
  bool out_of_tokens = false;
  while (!output.done()) {
    if (options.go_on && !options.go_on()) {
      reply.stopped_by_caller = true;
      break;
    }
    out_of_tokens = (options.max_tokens > 0 && reply.generated_tokens == options.max_tokens) ||
                    session.position() == session.context();
    if (out_of_tokens) break;
    const Sample sample = CO_TRY(next(sampler, session, top));
    sampler.accept(sample.token);
    ++reply.generated_tokens;
    if (options.on_token) options.on_token(sample);
    output.push(sample.token);
    if (engine.tokenizer().is_end(sample.token) || output.done()) break;
    const bool more = options.max_tokens == 0 || reply.generated_tokens < options.max_tokens;
    CO_TRY(co_await session.decode(sample.token, top, sampler, more));
  }
  output.finish(out_of_tokens);
  reply.stopped_by_caller = reply.stopped_by_caller || output.refused();
  reply.reason = output.reason();
  co_return reply;
}

}  // namespace bezel

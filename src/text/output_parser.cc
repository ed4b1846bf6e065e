#include "text/output_parser.h"

#include <algorithm>

#include "text/tool_syntax.h"
#include "text/whitespace.h"

namespace bezel {
namespace {

constexpr std::string_view kThoughtHeader = "thought\n";

}  // namespace

void OutputParser::special(std::string_view token) {
  if (state_ == State::kEnded) return;
  if (token == marker::kTurnEnd || token == marker::kEos || token == marker::kTurn) return end();
  if (token == marker::kResponse) {
    // It ends generation, but a host that goes on after a call must not see it.
    if (!std::exchange(after_call_, false)) end();
    return;
  }
  if (token == marker::kCall) return begin_call();
  if (state_ == State::kCall) {
    if (token == marker::kCallEnd) {
      end_call(true);
    } else {
      call_.special(token);
    }
    return;
  }
  if (token == marker::kChannel) return enter_channel();
  if (token == marker::kChannelEnd) {
    // Outside of a thought it ends the answer, and nothing after it is meant to be shown.
    if (state_ == State::kContent) return end();
    leave_channel();
  }
  // Any other control token is not text and is not shown.
}

void OutputParser::text(std::string_view text) {
  switch (state_) {
    case State::kEnded:
      return;
    case State::kCall:
      return call_.text(text);
    case State::kChannelName:
      while (!text.empty() && channel_name_.size() < kThoughtHeader.size() &&
             text.front() == kThoughtHeader[channel_name_.size()]) {
        channel_name_ += text.front();
        text.remove_prefix(1);
      }
      if (channel_name_.size() == kThoughtHeader.size()) {
        channel_name_.clear();
        state_ = State::kThought;
      } else if (!text.empty()) {  // another channel's name is left in its text
        state_ = State::kThought;
        emit(std::exchange(channel_name_, {}));
      }
      return emit(text);
    case State::kContent:
    case State::kThought:
      return emit(text);
  }
}

void OutputParser::finish(bool out_of_tokens) {
  out_of_tokens_ = out_of_tokens;
  if (state_ == State::kCall) end_call(!out_of_tokens);
  if (state_ != State::kEnded) end();
}

FinishReason OutputParser::finish_reason() const {
  if (out_of_tokens_) return FinishReason::kLength;
  return called_ ? FinishReason::kToolCalls : FinishReason::kStop;
}

// Shows text of the current state, holding back white space at its end.
void OutputParser::emit(std::string_view text) {
  if (skip_space_) {
    while (!text.empty() && is_ascii_space(text.front())) text.remove_prefix(1);
  }
  if (text.empty()) return;
  skip_space_ = false;
  after_call_ = false;
  const auto end = std::find_if_not(text.rbegin(), text.rend(), is_ascii_space).base();
  const std::string_view shown(text.begin(), end);
  if (!shown.empty()) {
    flush_space();
    append(shown);
  }
  space_ += text.substr(shown.size());
}

void OutputParser::append(std::string_view delta) {
  const bool thought = state_ == State::kThought;
  if (delta.empty() || (thought && !options_.thinking)) return;
  const auto kind = thought ? OutputEvent::Kind::kThinking : OutputEvent::Kind::kText;
  if (events_.empty() || events_.back().kind != kind) events_.push_back({kind, {}, {}, {}});
  events_.back().text += delta;
}

void OutputParser::flush_space() { append(std::exchange(space_, {})); }

void OutputParser::enter_channel() {
  if (state_ == State::kChannelName) leave_channel();
  space_.clear();
  skip_space_ = false;
  after_call_ = false;
  state_ = State::kChannelName;
}

void OutputParser::leave_channel() {
  // "thought" without its newline is still only the channel's name.
  const std::string name = std::exchange(channel_name_, {});
  if (state_ == State::kChannelName && name != "thought") {
    state_ = State::kThought;
    emit(name);
  }
  space_.clear();
  skip_space_ = true;
  state_ = State::kContent;
}

void OutputParser::begin_call() {
  if (state_ == State::kCall) end_call(true);
  if (state_ == State::kChannelName) leave_channel();
  space_.clear();
  state_ = State::kCall;
}

void OutputParser::end_call(bool complete) {
  const std::vector<ChatItem> body = call_.take();
  auto call = parse_call(body, {.tools = options_.tools, .repair = complete});
  OutputEvent event;
  if (call) {
    event.kind = OutputEvent::Kind::kToolCall;
    event.name = std::move(call->name);
    event.arguments = std::move(call->arguments);
    called_ = true;
  } else {
    event.kind = OutputEvent::Kind::kMalformedCall;
    event.text = std::string(marker::kCall) + join(body) + (complete ? std::string(marker::kCallEnd) : "");
  }
  events_.push_back(std::move(event));
  state_ = State::kContent;
  skip_space_ = true;
  after_call_ = true;
}

void OutputParser::end() {
  if (state_ == State::kCall) end_call(true);
  if (state_ == State::kChannelName) leave_channel();
  flush_space();
  state_ = State::kEnded;
}

}  // namespace bezel

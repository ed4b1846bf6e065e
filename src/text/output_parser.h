// Splits what the model writes into answer, thought and tool calls, token by token.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/chat_item.h"

namespace bezel {

struct OutputEvent {
  enum class Kind {
    kText,           // the next piece of the answer
    kThinking,       // the next piece of a thought
    kToolCall,       // a whole call
    kMalformedCall,  // a call that could not be read; `text` is what the model wrote, markers included
  };
  Kind kind = Kind::kText;
  std::string text;
  std::string name;       // of the called function
  std::string arguments;  // a JSON object

  friend bool operator==(const OutputEvent&, const OutputEvent&) = default;
};

enum class FinishReason { kStop, kLength, kToolCalls };

class OutputParser {
 public:
  struct Options {
    bool start_in_thought = false;          // the prompt ended inside a thought (ends_in_thought)
    bool thinking = true;                   // false: thoughts are dropped
    const nlohmann::json* tools = nullptr;  // the request's tools, for repairs; must outlive the parser
  };

  explicit OutputParser(Options options)
      : options_(options), state_(options.start_in_thought ? State::kThought : State::kContent) {}

  // The next control token, by its text, or the next piece of decoded text, in any size. Text is never
  // searched for control tokens: what the model spells out is not what it means.
  void special(std::string_view token);
  void text(std::string_view text);

  // The end of the stream; `out_of_tokens` when a limit cut it short. A call cut short is not repaired.
  void finish(bool out_of_tokens = false);

  // What has become known since the last call.
  std::vector<OutputEvent> take() { return std::exchange(events_, {}); }

  // Nothing useful can follow: generation may stop.
  bool ended() const { return state_ == State::kEnded; }

  FinishReason finish_reason() const;

 private:
  enum class State { kContent, kChannelName, kThought, kCall, kEnded };

  void emit(std::string_view text);
  void append(std::string_view delta);
  void flush_space();
  void enter_channel();
  void leave_channel();
  void begin_call();
  void end_call(bool complete);
  void end();

  Options options_;
  State state_;
  std::string space_;         // white space that is dropped if a marker follows
  std::string channel_name_;  // the part of "thought\n" seen so far
  ItemWriter call_;
  bool skip_space_ = false;  // white space here is dropped
  bool after_call_ = false;  // one `<|tool_response>` is to be ignored
  bool called_ = false;
  bool out_of_tokens_ = false;
  std::vector<OutputEvent> events_;
};

}  // namespace bezel

#include "text/output_parser.h"

#include <gtest/gtest.h>

#include "text/chat.h"

namespace bezel {
namespace {

// "<...>" of a known marker is a control token, all else is text.
std::vector<ChatItem> stream(std::string_view text) {
  constexpr std::string_view kMarkers[] = {marker::kTurn,        marker::kTurnEnd, marker::kChannel,
                                           marker::kChannelEnd,  marker::kCall,    marker::kCallEnd,
                                           marker::kEos,         marker::kQuote,   marker::kResponse,
                                           marker::kResponseEnd, marker::kImage};
  ItemWriter out;
  while (!text.empty()) {
    std::size_t length = 0;
    for (const std::string_view name : kMarkers) {
      if (text.starts_with(name)) length = name.size();
    }
    if (length > 0) {
      out.special(text.substr(0, length));
    } else {
      out.text(text.substr(0, 1));
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out.take();
}

// Events as one string: (text), {thought}, [name arguments], !malformed!.
std::string show(const std::vector<OutputEvent>& events) {
  std::vector<OutputEvent> merged;
  for (const OutputEvent& event : events) {
    if (!merged.empty() && merged.back().kind == event.kind && event.kind < OutputEvent::Kind::kToolCall) {
      merged.back().text += event.text;
    } else {
      merged.push_back(event);
    }
  }
  std::string shown;
  for (const OutputEvent& event : merged) {
    switch (event.kind) {
      case OutputEvent::Kind::kText:
        shown += "(" + event.text + ")";
        break;
      case OutputEvent::Kind::kThinking:
        shown += "{" + event.text + "}";
        break;
      case OutputEvent::Kind::kToolCall:
        shown += "[" + event.name + " " + event.arguments + "]";
        break;
      case OutputEvent::Kind::kMalformedCall:
        shown += "!" + event.text + "!";
        break;
    }
  }
  return shown;
}

// Feeds the stream with its texts cut into pieces of `size`, and once more cut in two at every position;
// all must agree.
std::string parse(std::string_view text, OutputParser::Options options = {}, bool out_of_tokens = false) {
  const std::vector<ChatItem> items = stream(text);
  const auto run = [&](std::size_t size, std::size_t cut, bool take_often) {
    OutputParser parser(options);
    std::vector<OutputEvent> events;
    std::size_t position = 0;
    const auto collect = [&] {
      for (OutputEvent& event : parser.take()) events.push_back(std::move(event));
    };
    for (const ChatItem& item : items) {
      if (item.special) {
        parser.special(item.text);
      } else {
        for (std::size_t begin = 0; begin < item.text.size();) {
          std::size_t length = std::min(size, item.text.size() - begin);
          if (position < cut && position + length > cut) length = cut - position;
          parser.text(std::string_view(item.text).substr(begin, length));
          begin += length;
          position += length;
          if (take_often) collect();
        }
      }
      if (take_often) collect();
    }
    parser.finish(out_of_tokens);
    collect();
    return show(events);
  };
  const std::string whole = run(text.size() + 1, 0, false);
  EXPECT_EQ(run(1, 0, true), whole);
  for (std::size_t cut = 1; cut < text.size(); ++cut)
    EXPECT_EQ(run(text.size() + 1, cut, true), whole) << cut;
  return whole;
}

TEST(OutputParser, AnswersAndThoughts) {
  EXPECT_EQ(parse(" Hello\n world \n<turn|>"), "( Hello\n world \n)");
  EXPECT_EQ(parse("<|channel>thought\nLet me\n\nsee. \n<channel|>\n\n42.<turn|>"), "{Let me\n\nsee.}(42.)");
  EXPECT_EQ(parse("\n<|channel>thought\n<channel|>Hi<eos>"), "(Hi)");
  EXPECT_EQ(parse("A \n<|channel>thought\nB<channel|> C<|channel>thought\nD<channel|>\n"), "(A){B}(C){D}");
  EXPECT_EQ(parse("<|channel>thought\nunfinished \n"), "{unfinished \n}");
}

TEST(OutputParser, ChannelNames) {
  EXPECT_EQ(parse("<|channel>final\nX<channel|>Y"), "{final\nX}(Y)");
  EXPECT_EQ(parse("<|channel>thoughtful<channel|>Y"), "{thoughtful}(Y)");
  EXPECT_EQ(parse("<|channel>thought<channel|>Y"), "(Y)");
  EXPECT_EQ(parse("<|channel>thou<channel|>Y"), "{thou}(Y)");
  EXPECT_EQ(parse("<|channel>thought\nthought\nX<channel|>"), "{thought\nX}");
  EXPECT_EQ(parse("<|channel>tho"), "{tho}");
}

TEST(OutputParser, StartsInsideAThought) {
  EXPECT_EQ(parse("thought\nis free.\n<channel|>\nSo.", {.start_in_thought = true}),
            "{thought\nis free.}(So.)");
}

TEST(OutputParser, DropsThoughtsThatWereNotAskedFor) {
  EXPECT_EQ(parse("<|channel>thought\nsecret \n x<channel|> Y", {.thinking = false}), "(Y)");
  EXPECT_EQ(parse("secret \n", {.start_in_thought = true, .thinking = false}), "");
}

TEST(OutputParser, ToolCalls) {
  EXPECT_EQ(
      parse("Let me check.\n<|tool_call>call:f{a:<|\"|>x <|\"|>}<tool_call|><|tool_call>call:g{}<tool_call|>"
            "<|tool_response>"),
      R"((Let me check.)[f {"a":"x "}][g {}])");
  EXPECT_EQ(parse("<|tool_call>call:f{}<tool_call|><tool_call|> \n<|tool_response> \nDone.<turn|>"),
            "[f {}](Done.)");
  EXPECT_EQ(parse("<|tool_call>call:f{}<tool_call|><|tool_response><|tool_response>gone"), "[f {}]");
  EXPECT_EQ(parse("<|channel>thought\nHm.\n<|tool_call>call:f{}<tool_call|>"), "{Hm.}[f {}]");
  EXPECT_EQ(parse("<|tool_call>call:f{a:1}<|tool_call>call:g{}<turn|>gone"), R"([f {"a":1}][g {}])");
}

TEST(OutputParser, CallsThatAreCutOff) {
  EXPECT_EQ(parse("<|tool_call>call:f{a:<|\"|>x"), R"([f {"a":"x"}])");
  EXPECT_EQ(parse("<|tool_call>call:f{a:<|\"|>x", {}, true), "!<|tool_call>call:f{a:<|\"|>x!");
  EXPECT_EQ(parse("<|tool_call>call:f{a:1}", {}, true), R"([f {"a":1}])");
  EXPECT_EQ(parse("<|tool_call>nonsense<tool_call|>after"), "!<|tool_call>nonsense<tool_call|>!(after)");
}

TEST(OutputParser, StrayMarkers) {
  EXPECT_EQ(parse("Answer. <channel|>gone"), "(Answer. )");
  EXPECT_EQ(parse("a<tool_call|>b<|\"|>c<|image|>d"), "(abcd)");
  EXPECT_EQ(parse("a<|turn>user\ngone"), "(a)");
  EXPECT_EQ(parse("a<|tool_response>gone"), "(a)");
  EXPECT_EQ(parse("<|channel><|channel>thought\nx<channel|>"), "{x}");
  EXPECT_EQ(parse("<|channel>thought\nx<|channel>thought\ny<channel|>z"), "{xy}(z)");
}

TEST(OutputParser, SpelledOutMarkersAreText) {
  OutputParser parser({});
  parser.text("<|tool_call>call:f{}<tool_call|> and <turn|>");
  EXPECT_EQ(show(parser.take()), "(<|tool_call>call:f{}<tool_call|> and <turn|>)");
  EXPECT_FALSE(parser.ended());
}

TEST(OutputParser, HoldsBackOnlyWhiteSpace) {
  OutputParser parser({});
  parser.text("Hello \n");
  EXPECT_EQ(show(parser.take()), "(Hello)");
  parser.text("x");
  EXPECT_EQ(show(parser.take()), "( \nx)");
  parser.special("<turn|>");
  EXPECT_TRUE(parser.ended());
}

TEST(OutputParser, FinishReasons) {
  const auto reason = [](std::string_view text, bool out_of_tokens) {
    OutputParser parser({});
    for (const ChatItem& item : stream(text))
      item.special ? parser.special(item.text) : parser.text(item.text);
    parser.finish(out_of_tokens);
    return parser.finish_reason();
  };
  EXPECT_EQ(reason("a<turn|>", false), FinishReason::kStop);
  EXPECT_EQ(reason("a", true), FinishReason::kLength);
  EXPECT_EQ(reason("<|tool_call>call:f{}<tool_call|><|tool_response>", false), FinishReason::kToolCalls);
  EXPECT_EQ(reason("<|tool_call>bad<tool_call|><|tool_response>", false), FinishReason::kStop);
}

// What the model wrote, stored as messages, renders as what the model wrote.
TEST(OutputParser, RoundTripThroughTheTemplate) {
  const std::string written =
      "<|channel>thought\nHm.\n<channel|><|tool_call>call:f{a:[1,<|\"|>x<|\"|>],b:{c:null}}<tool_call|><|"
      "tool_response>";
  OutputParser parser({});
  for (const ChatItem& item : stream(written))
    item.special ? parser.special(item.text) : parser.text(item.text);
  parser.finish();
  nlohmann::json message = {{"role", "assistant"}};
  for (const OutputEvent& event : parser.take()) {
    if (event.kind == OutputEvent::Kind::kThinking) message["reasoning"] = event.text;
    if (event.kind == OutputEvent::Kind::kToolCall) {
      message["tool_calls"].push_back({{"function", {{"name", event.name}, {"arguments", event.arguments}}}});
    }
  }
  const auto items = render_chat(nlohmann::json::array({message}), {});
  ASSERT_TRUE(items) << items.error().message;
  EXPECT_EQ(join(*items), "<bos><|turn>model\n" + written);
}

}  // namespace
}  // namespace bezel

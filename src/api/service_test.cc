// The service on the CPU: what a host relies on beside the engine itself.
#include "api/service.h"

#include "support.h"

namespace bezel {
namespace {

using nlohmann::json;

class ServiceTest : public testing::Test {
 protected:
  static constexpr u32 kSaved = 3, kProjector = 4, kPixels = 5, kSamples = 6;
  std::vector<std::byte> saved_;
  u32 pauses_ = 0;
  Service service_{{
      .open_source = [this](u32 id, u64, std::string name) -> std::unique_ptr<Source> {
        if (id == kSaved) return memory_source(saved_, std::move(name));
        if (id == kPixels)
          return memory_source(std::vector<std::byte>(std::size_t{96} * 48 * 4), std::move(name));
        if (id == kSamples)
          return memory_source(std::vector<std::byte>(std::size_t{16000} * 4), std::move(name));
        if (id == kProjector)
          return memory_source(read_bytes(data_path("tiny-e2b-mmproj.gguf")), std::move(name));
        return memory_source(read_bytes(data_path(id == 1 ? "tiny-e2b-Q4_K_M.gguf" : "tiny-e2b.gguf")),
                             std::move(name));
      },
      .open_sink =
          [this](u32) {
            saved_.clear();
            return [this](Bytes bytes) -> Status {
              saved_.insert(saved_.end(), bytes.begin(), bytes.end());
              return {};
            };
          },
      .pause = [this]() -> Task<Status> {
        ++pauses_;
        co_return Status{};
      },
  }};
  std::vector<json> events_;
  u32 events_until_stop_ = ~0u;

  Result<Answer> call(const char* method, json args) {
    Caller caller;
    caller.event = [this](const json& event) { events_.push_back(event); };
    caller.go_on = [this] { return events_.size() < events_until_stop_; };
    return run_now(service_.handle(method, std::move(args), std::move(caller)));
  }
  json good(const char* method, json args) {
    auto answer = call(method, std::move(args));
    if (!answer) ADD_FAILURE() << answer.error().message;
    return answer ? answer->value : json();
  }
  std::string error(const char* method, json args) {
    const auto answer = call(method, std::move(args));
    EXPECT_FALSE(answer);
    return answer ? "" : answer.error().message;
  }
  u32 load(u32 source = 1) {
    return good("load", {{"parts", {{{"source", source}, {"size", 1}, {"name", "model"}}}}})
        .value("model", 0u);
  }
};

TEST_F(ServiceTest, AChatIsRenderedFedAndAnswered) {
  const u32 model = load();
  ASSERT_FALSE(events_.empty());
  EXPECT_EQ(events_.back()["type"], "progress");
  EXPECT_EQ(events_.back()["done"], events_.back()["total"]);
  events_.clear();
  const json tokens = good("tokenize", {{"model", model}, {"text", "hello there"}})["tokens"];
  EXPECT_EQ(good("detokenize", {{"model", model}, {"tokens", tokens}})["text"], "hello there");
  const u32 session = good("open_session", {{"model", model}, {"context", 64}})["session"];
  const json reply = good("generate", {{"session", session},
                                       {"prompt", tokens},
                                       {"max_tokens", 5},
                                       {"seed", 3},
                                       {"logprobs", true},
                                       {"top_logprobs", 2}});
  EXPECT_EQ(reply["reason"], "length");
  EXPECT_EQ(reply["generatedTokens"], 5);
  u32 told = 0;
  for (const json& event : events_) {
    if (event["type"] != "token") continue;
    ++told;
    EXPECT_LE(event["logprob"], 0.0);
    EXPECT_EQ(event["top"].size(), 2u);
  }
  EXPECT_EQ(told, 5u);
}

TEST_F(ServiceTest, LogitsComeBackAsNumbers) {
  const u32 model = load(2);
  const u32 session = good("open_session", {{"model", model}, {"context", 8}})["session"];
  const auto one = call("feed", {{"session", session}, {"tokens", {1, 2}}});
  ASSERT_OK(one);
  EXPECT_EQ(one->numbers.size(), 48u);
  EXPECT_EQ(good("rewind", {{"session", session}, {"count", 0}})["position"], 0);
  const auto all = call("feed", {{"session", session}, {"tokens", {1, 2}}, {"all", true}});
  ASSERT_OK(all);
  ASSERT_EQ(all->numbers.size(), 96u);
  EXPECT_TRUE(std::ranges::equal(one->numbers, std::span(all->numbers).last(48)));
}

TEST_F(ServiceTest, AProbeReadsTheHeaderOnly) {
  const json cost = good("probe", {{"parts", {{{"source", 1}, {"size", 1}, {"name", "model"}}}}});
  EXPECT_EQ(cost["vocabulary"], 768);
  EXPECT_GT(cost["weightBytes"], cost["tableBytes"]);
  EXPECT_GT(cost["kvPerToken"], 0);
  EXPECT_GT(cost["largestRow"], 0);
  EXPECT_EQ(good("memory", {})["models"], 0);
}

TEST_F(ServiceTest, ChatCompletionsInASessionOrOfAModel) {
  const u32 model = load();
  const u32 session = good("open_session", {{"model", model}, {"context", 256}})["session"];
  const json request{{"model", "gemma"},
                     {"messages", json::array({{{"role", "user"}, {"content", "hello"}}})},
                     {"max_tokens", 5},
                     {"seed", 3},
                     {"stream", true}};
  events_.clear();
  const json first = good("complete", {{"session", session}, {"request", request}, {"name", "mine"}});
  EXPECT_EQ(first["object"], "chat.completion");
  EXPECT_EQ(first["model"], "mine");
  ASSERT_GE(events_.size(), 2u);
  for (const json& event : events_) {
    EXPECT_EQ(event["type"], "chunk");
    EXPECT_EQ(event["chunk"]["id"], first["id"]);
  }
  const json second = good("complete", {{"model", model}, {"request", request}});
  EXPECT_EQ(second["model"], "gemma");
  EXPECT_EQ(second["choices"], first["choices"]);
  EXPECT_EQ(second["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
  const json third = good("complete", {{"model", model}, {"request", request}});
  EXPECT_GT(third["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
  EXPECT_EQ(error("complete", {{"model", model}}), "'request' is missing.");
  EXPECT_EQ(error("complete", {{"request", request}}), "'model' is missing.");
  EXPECT_EQ(error("complete", {{"model", model}, {"request", json::object()}}), "'messages' is missing.");
  EXPECT_TRUE(
      error("complete", {{"model", model}, {"request", request}, {"context", 4}}).contains("context"));
}

TEST_F(ServiceTest, AConversationIsSavedAndGoesOnInAnotherLoad) {
  u32 model = load();
  EXPECT_NE(error("save_state", {{"model", model}, {"sink", 1}}).find("no conversation"), std::string::npos);
  json messages = {{{"role", "user"}, {"content", "hello there, this is a long question about nothing"}}};
  const auto complete = [&] {
    return good("complete", {{"model", model},
                             {"context", 256},
                             {"request", {{"messages", messages}, {"max_tokens", 4}, {"seed", 1}}}});
  };
  const json first = complete();
  messages.push_back(first["choices"][0]["message"]);
  messages.push_back({{"role", "user"}, {"content", "and?"}});
  const json saved = good("save_state", {{"model", model}, {"sink", 1}});
  EXPECT_EQ(saved["bytes"], saved_.size());
  EXPECT_GT(pauses_, 4u) << "after each pass";
  const json expected = complete();

  good("unload", {{"model", model}});
  model = load();
  const json part = {{"source", kSaved}, {"size", saved_.size()}, {"name", "chat"}};
  const json restored = good("restore_state", {{"model", model}, {"part", part}, {"context", 256}});
  EXPECT_EQ(restored["tokens"], saved["tokens"]);
  const json again = complete();
  EXPECT_EQ(again["choices"], expected["choices"]);
  EXPECT_EQ(again["usage"], expected["usage"]) << "as much of the prompt was there";
  EXPECT_GE(again["usage"]["prompt_tokens_details"]["cached_tokens"], first["usage"]["prompt_tokens"]);

  saved_[saved_.size() / 2] ^= std::byte{1};
  EXPECT_NE(error("restore_state", {{"model", model}, {"part", part}, {"context", 256}}).find("damaged"),
            std::string::npos);
  EXPECT_EQ(complete()["usage"]["prompt_tokens"], again["usage"]["prompt_tokens"]);
  EXPECT_NE(error("restore_state", {{"model", load(2)}, {"part", part}}).find("another model"),
            std::string::npos);
}

TEST_F(ServiceTest, AModelSaysWhetherItSeesAndHears) {
  const json parts{{{"source", 1}, {"size", 1}, {"name", "model"}}};
  const json blind = good("load", {{"parts", parts}});
  EXPECT_EQ(blind["sees"], false);
  EXPECT_EQ(blind["hears"], false);
  const json pixels{{"source", kPixels}, {"size", 96 * 48 * 4}, {"name", "picture"}};
  const json samples{{"source", kSamples}, {"size", 16000 * 4}, {"name", "recording"}};
  EXPECT_TRUE(error("see", {{"model", blind["model"]}, {"pixels", pixels}, {"width", 96}, {"height", 48}})
                  .contains("no eyes"));
  EXPECT_TRUE(
      error("hear", {{"model", blind["model"]}, {"samples", samples}, {"rate", 16000}}).contains("no ears"));
  EXPECT_EQ(good("probe", {{"parts", parts}})["sees"], false);

  const json projector{{"source", kProjector}, {"size", 1}, {"name", "projector"}};
  const json able = good("load", {{"parts", parts}, {"projector", projector}});
  EXPECT_EQ(able["sees"], true);
  EXPECT_EQ(able["hears"], true);
  EXPECT_EQ(error("load", {{"parts", parts}, {"projector", 7}}), "'source' is missing.");
}

TEST_F(ServiceTest, APromptCountsThePicturesItHolds) {
  const json parts{{{"source", 1}, {"size", 1}, {"name", "model"}}};
  const json projector{{"source", kProjector}, {"size", 1}, {"name", "projector"}};
  const u32 model = good("load", {{"parts", parts}, {"projector", projector}}).value("model", 0u);
  const json pixels{{"source", kPixels}, {"size", 96 * 48 * 4}, {"name", "picture"}};
  const json seen =
      good("see", {{"model", model}, {"pixels", pixels}, {"width", 96}, {"height", 48}, {"budget", 70}});
  const auto render = [&](const json& part) {
    return json{{"model", model},
                {"messages", json::array({{{"role", "user"}, {"content", json::array({part})}}})}};
  };
  const auto count = [&](const json& part) { return good("render", render(part))["tokens"].size(); };
  const std::size_t without = count({{"type", "text"}, {"text", ""}});
  // The picture's own tokens, and one at each end.
  EXPECT_EQ(count({{"type", "image"}, {"media", seen["media"]}}), without + seen["tokens"].get<u32>() + 2);
  EXPECT_TRUE(
      error("render", render({{"type", "image"}, {"media", 999}})).contains("no picture or recording"));
  good("forget", {{"model", model}, {"media", seen["media"]}});
  EXPECT_TRUE(error("render", render({{"type", "image"}, {"media", seen["media"]}})).contains("no picture"));
  EXPECT_TRUE(error("see", {{"model", model}, {"pixels", pixels}, {"width", 96}, {"height", 47}})
                  .contains("3 or 4 bytes"));
}

TEST_F(ServiceTest, WhatIsClosedIsGone) {
  const u32 model = load(2);
  const u32 session = good("open_session", {{"model", model}, {"context", 8}})["session"];
  EXPECT_EQ(good("memory", {})["sessions"], 1);
  good("unload", {{"model", model}});
  EXPECT_EQ(good("memory", {})["sessions"], 0);
  EXPECT_EQ(error("feed", {{"session", session}, {"tokens", {1}}}),
            "There is no session " + std::to_string(session) + ": it was closed.");
}

TEST_F(ServiceTest, ALoadThatIsStoppedLeavesNothing) {
  events_until_stop_ = 1;
  EXPECT_EQ(error("load", {{"parts", {{{"source", 1}, {"size", 1}, {"name", "m"}}}}}),
            "Loading was stopped.");
  EXPECT_EQ(good("memory", {})["models"], 0);
}

TEST_F(ServiceTest, WrongArgumentsAreNamed) {
  const u32 model = load(2);
  EXPECT_EQ(error("nothing", {}), "There is no method 'nothing'.");
  EXPECT_EQ(error("load", json::array()), "'parts' must name the files of the model.");
  EXPECT_EQ(error("load", {{"parts", {1}}}), "'source' is missing.");
  EXPECT_EQ(error("tokenize", {{"model", "x"}, {"text", "a"}}),
            "'model' must be a whole number from 0 to 4294967294.");
  EXPECT_EQ(error("tokenize", {{"model", model}}), "'text' is missing.");
  EXPECT_EQ(error("render", {{"model", model}}), "'messages' is missing.");
  const u32 session = good("open_session", {{"model", model}, {"context", 8}})["session"];
  for (const json& tokens : {json{1.5}, json{-1}, json{"1"}, json{1e300}, json(7)}) {
    EXPECT_NE(error("feed", {{"session", session}, {"tokens", tokens}}), "") << tokens;
  }
  EXPECT_EQ(error("generate", {{"session", session}, {"prompt", {1}}, {"logit_bias", json::array()}}),
            "'logit_bias' must be an object from token ids to numbers.");
  EXPECT_EQ(error("generate", {{"session", session}, {"prompt", {1}}, {"temperature", "warm"}}),
            "'temperature' must be a number.");
}

TEST(AsyncLock, TurnsAreTakenInOrder) {
  AsyncLock lock;
  std::vector<int> order;
  std::coroutine_handle<> paused;
  struct Pause {
    std::coroutine_handle<>& where;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> h) const { where = h; }
    void await_resume() const {}
  };
  const auto work = [&](int name) -> Task<Status> {
    const auto turn = co_await lock.turn();
    order.push_back(name);
    if (name == 1) co_await Pause{paused};
    order.push_back(-name);
    co_return Status{};
  };
  auto first = work(1), second = work(2), third = work(3);
  first.start();
  second.start();
  third.start();
  EXPECT_EQ(order, std::vector{1});
  paused.resume();
  EXPECT_EQ(order, (std::vector{1, -1, 2, -2, 3, -3}));
  EXPECT_TRUE(first.done() && second.done() && third.done());
}

}  // namespace
}  // namespace bezel

// Chat completions on a random model: what it says is nonsense, how it is told is not.
#include "api/openai.h"

#include "base/format_text.h"
#include "model/synth.h"
#include "support.h"
#include "temp_folder.h"

namespace bezel {
namespace {

using nlohmann::json;

const json kTools = json::array(
    {{{"type", "function"},
      {"function", {{"name", "f"}, {"parameters", {{"type", "object"}, {"properties", json::object()}}}}}}});

class OpenAi : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    TempFolder folder;
    ASSERT_OK(write_synthetic_model(folder / "tiny.gguf", {.preset = "tiny", .quant = "q8_0"}));
    auto file = open_gguf(folder / "tiny.gguf");
    ASSERT_OK(file);
    auto engine = run_now(Engine::load(std::move(*file)));
    ASSERT_OK(engine);
    engine_ = engine->release();
  }
  static void TearDownTestSuite() {
    delete engine_;
    engine_ = nullptr;
  }

  static json request(json more = json::object()) {
    json all{{"model", "m"},
             {"messages", json::array({{{"role", "user"}, {"content", "Why is the sky blue?"}}})},
             {"max_tokens", 8},
             {"seed", 5}};
    all.update(more);
    return all;
  }

  Result<json> run(const json& request, Session& session) {
    chunks_.clear();
    ChatRequest chat = TRY(run_now(read_chat_request(*engine_, request, system_)));
    ChatCallbacks callbacks;
    callbacks.chunk = [this](const json& chunk) {
      chunks_.push_back(chunk);
      return chunks_.size() < stop_after_;
    };
    return run_now(complete_chat(*engine_, session, std::move(chat), "the-model", callbacks));
  }
  json good(const json& request) {
    Session session = *Session::create(engine_->backend(), 256);
    auto done = run(request, session);
    if (!done) ADD_FAILURE() << done.error().message;
    return done ? *done : json();
  }
  // The answer to a model that writes these pieces: control tokens, and text. Each token has a bias that a
  // penalty takes away when it was written, so that the next one wins. No token may come twice.
  json scripted(const json& request, const std::vector<std::string_view>& pieces) {
    chunks_.clear();
    auto chat = run_now(read_chat_request(*engine_, request, system_));
    if (!chat) {
      ADD_FAILURE() << chat.error().message;
      return {};
    }
    std::vector<u32> script;
    for (const auto piece : pieces) engine_->tokenizer().encode(piece, Specials::kParse, script);
    SamplerOptions& sampling = chat->options.sampling;
    sampling.temperature = 0;
    sampling.presence_penalty = 1e6F;
    for (std::size_t i = 0; i < script.size(); ++i) {
      sampling.logit_bias.emplace_back(script[i], 100.0F * static_cast<f32>(script.size() - i));
    }
    Session session = *Session::create(engine_->backend(), 512);
    ChatCallbacks callbacks;
    callbacks.chunk = [this](const json& chunk) { return chunks_.push_back(chunk), true; };
    auto done = run_now(complete_chat(*engine_, session, std::move(*chat), "m", callbacks));
    if (!done) ADD_FAILURE() << done.error().message;
    return done ? *done : json();
  }
  static Error error(const json& request) {
    const auto read = run_now(read_chat_request(*engine_, request));
    EXPECT_FALSE(read) << request;
    return read ? Error() : read.error();
  }
  // The text of all deltas of one kind.
  std::string joined(const char* key) const {
    std::string text;
    for (const json& chunk : chunks_) {
      for (const json& choice : chunk["choices"]) text += choice["delta"].value(key, "");
    }
    return text;
  }
  static std::string content(const json& completion) {
    return completion["choices"][0]["message"]["content"];
  }

  static Engine* engine_;
  std::vector<json> chunks_;
  std::size_t stop_after_ = ~std::size_t{0};
  std::string system_;
};

Engine* OpenAi::engine_ = nullptr;

TEST_F(OpenAi, ACompletionHasItsParts) {
  const json done = good(request());
  EXPECT_TRUE(chunks_.empty());
  EXPECT_TRUE(done["id"].get<std::string>().starts_with("chatcmpl-"));
  EXPECT_EQ(done["object"], "chat.completion");
  EXPECT_GT(done["created"], 1'600'000'000);
  EXPECT_EQ(done["model"], "the-model");
  ASSERT_EQ(done["choices"].size(), 1u);
  const json& choice = done["choices"][0];
  EXPECT_EQ(choice["index"], 0);
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_EQ(choice["logprobs"], nullptr);
  EXPECT_EQ(choice["message"]["role"], "assistant");
  EXPECT_TRUE(choice["message"]["content"].is_string());
  EXPECT_FALSE(choice["message"].contains("tool_calls"));
  const json& usage = done["usage"];
  EXPECT_EQ(usage["completion_tokens"], 8);
  EXPECT_EQ(usage["prompt_tokens"], run_now(read_chat_request(*engine_, request()))->prompt.size());
  EXPECT_EQ(usage["total_tokens"], usage["prompt_tokens"].get<int>() + 8);
  EXPECT_EQ(usage["prompt_tokens_details"]["cached_tokens"], 0);
  EXPECT_GT(done["timings"]["time_to_first_token_ms"], 0);
  EXPECT_GT(done["timings"]["prefill_tokens_per_second"], 0);
  EXPECT_GT(done["timings"]["decode_tokens_per_second"], 0);
}

TEST_F(OpenAi, AStreamIsTheSameInPieces) {
  const json done = good(request({{"stream", true}, {"max_tokens", 20}}));
  ASSERT_GE(chunks_.size(), 3u);
  EXPECT_EQ(chunks_[0]["choices"][0]["delta"], (json{{"role", "assistant"}, {"content", ""}}));
  for (const json& chunk : chunks_) {
    EXPECT_EQ(chunk["object"], "chat.completion.chunk");
    EXPECT_EQ(chunk["id"], done["id"]);
    EXPECT_EQ(chunk["created"], done["created"]);
    EXPECT_FALSE(chunk.contains("usage"));
    const bool last = &chunk == &chunks_.back();
    EXPECT_EQ(chunk["choices"][0]["finish_reason"], last ? json("length") : json());
    EXPECT_EQ(chunk.contains("timings"), last);
  }
  EXPECT_EQ(chunks_.back()["choices"][0]["delta"], json::object());
  EXPECT_EQ(joined("content"), content(done));
  EXPECT_EQ(content(done), content(good(request({{"max_tokens", 20}}))));
}

TEST_F(OpenAi, UsageComesLastWhereAskedFor) {
  const json done = good(request({{"stream", true}, {"stream_options", {{"include_usage", true}}}}));
  ASSERT_GE(chunks_.size(), 3u);
  EXPECT_EQ(chunks_.back()["choices"], json::array());
  EXPECT_EQ(chunks_.back()["usage"], done["usage"]);
  EXPECT_EQ(chunks_[0]["usage"], nullptr);
  EXPECT_TRUE(chunks_[0].contains("usage"));
}

TEST_F(OpenAi, SeedsDecide) {
  const auto text = [&](json seed) { return content(good(request({{"seed", seed}, {"max_tokens", 10}}))); };
  EXPECT_EQ(text(1), text(1));
  EXPECT_EQ(text(-1), text(-1));
  EXPECT_NE(text(1), text(2));
  EXPECT_NE(text(nullptr), text(nullptr));
  const json cold{{"temperature", 0}, {"seed", nullptr}};
  EXPECT_EQ(content(good(request(cold))), content(good(request(cold))));
}

TEST_F(OpenAi, StopStringsEndTheAnswer) {
  const json long_one = request({{"max_tokens", 24}});
  const std::string whole = content(good(long_one));
  ASSERT_GT(whole.size(), 8u);
  // Of a length that keeps UTF-8 whole.
  std::size_t at = whole.size() / 2;
  while (at + 1 < whole.size() && ((whole[at] & 0x80) || (whole[at + 1] & 0x80))) ++at;
  const std::string stop = whole.substr(at, 2);
  const std::string expected = whole.substr(0, whole.find(stop));
  for (const json& stops : {json(stop), json{stop, "never this"}}) {
    json asked = long_one;
    asked["stop"] = stops;
    asked["stream"] = true;
    const json done = good(asked);
    EXPECT_EQ(content(done), expected);
    EXPECT_EQ(joined("content"), expected);
    EXPECT_EQ(done["choices"][0]["finish_reason"], "stop");
    EXPECT_LT(done["usage"]["completion_tokens"], 24);
  }
}

TEST_F(OpenAi, LogprobsAreOfTheAnswersTokens) {
  const json done = good(request({{"logprobs", true}, {"top_logprobs", 3}, {"stream", true}}));
  const json& entries = done["choices"][0]["logprobs"]["content"];
  ASSERT_GT(entries.size(), 0u);
  EXPECT_LE(entries.size(), 8u);
  std::string bytes;
  for (const json& entry : entries) {
    EXPECT_TRUE(entry["token"].is_string());
    EXPECT_LE(entry["logprob"], 0);
    ASSERT_EQ(entry["top_logprobs"].size(), 3u);
    EXPECT_GE(entry["top_logprobs"][0]["logprob"], entry["top_logprobs"][1]["logprob"]);
    EXPECT_GE(entry["top_logprobs"][0]["logprob"], entry["logprob"]);
    for (const json& byte : entry["bytes"]) bytes += static_cast<char>(byte.get<int>());
  }
  json streamed = json::array();
  for (const json& chunk : chunks_) {
    const json& part = chunk["choices"][0]["logprobs"];
    if (part.is_object()) streamed.insert(streamed.end(), part["content"].begin(), part["content"].end());
  }
  EXPECT_EQ(streamed, entries);
  EXPECT_EQ(good(request({{"logprobs", true}}))["choices"][0]["logprobs"]["content"][0]["top_logprobs"],
            json::array());
}

TEST_F(OpenAi, ABiasDecides) {
  const auto& tokenizer = engine_->tokenizer();
  std::vector<u32> word;
  tokenizer.encode("a", Specials::kPlain, word);
  ASSERT_EQ(word.size(), 1u);
  const json done = good(
      request({{"logit_bias", {{std::to_string(word[0]), 100}}}, {"temperature", 0}, {"max_tokens", 3}}));
  EXPECT_EQ(content(done), "aaa");
}

TEST_F(OpenAi, ToolsAreOffered) {
  const auto with = run_now(read_chat_request(*engine_, request({{"tools", kTools}})));
  ASSERT_OK(with);
  const auto none =
      run_now(read_chat_request(*engine_, request({{"tools", kTools}, {"tool_choice", "none"}})));
  ASSERT_OK(none);
  EXPECT_GT(with->prompt.size(), none->prompt.size());
  EXPECT_EQ(none->prompt.ids, run_now(read_chat_request(*engine_, request()))->prompt.ids);
  EXPECT_EQ(with->options.parsing.tools, with->tools.get());
}

TEST_F(OpenAi, CallsAreTold) {
  const json done = scripted(request({{"tools", kTools}, {"stream", true}, {"max_tokens", 30}}),
                             {"<|tool_call>", "call:f{}", "<tool_call|>", "<turn|>"});
  const json& choice = done["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(choice["message"]["content"], nullptr);
  ASSERT_EQ(choice["message"]["tool_calls"].size(), 1u);
  json call = choice["message"]["tool_calls"][0];
  EXPECT_TRUE(call["id"].get<std::string>().starts_with("call_"));
  EXPECT_EQ(call["type"], "function");
  EXPECT_EQ(call["function"], (json{{"name", "f"}, {"arguments", "{}"}}));
  call["index"] = 0;
  ASSERT_EQ(chunks_.size(), 3u);
  EXPECT_EQ(chunks_[1]["choices"][0]["delta"], (json{{"tool_calls", {call}}}));
  EXPECT_EQ(chunks_[2]["choices"][0]["finish_reason"], "tool_calls");
}

TEST_F(OpenAi, ThoughtsAreKeptApart) {
  const std::vector<std::string_view> script = {"<|channel>", "th",         "ou", "gh",
                                                "t\nHm",      "<channel|>", "ok", "<turn|>"};
  json asked = request({{"thinking", true}, {"stream", true}, {"logprobs", true}, {"max_tokens", 30}});
  const json done = scripted(asked, script);
  const json& choice = done["choices"][0];
  EXPECT_EQ(choice["message"]["reasoning_content"], "Hm");
  EXPECT_EQ(joined("reasoning_content"), "Hm");
  EXPECT_EQ(choice["message"]["content"], "ok");
  EXPECT_EQ(choice["finish_reason"], "stop");
  std::string spelled;
  for (const json& entry : choice["logprobs"]["content"]) spelled += entry["token"];
  EXPECT_EQ(spelled, "ok");
  asked["thinking"] = false;
  const json silent = scripted(asked, script);
  EXPECT_FALSE(silent["choices"][0]["message"].contains("reasoning_content"));
  EXPECT_EQ(content(silent), "ok");
  EXPECT_EQ(joined("reasoning_content"), "");
}

TEST_F(OpenAi, ThinkingIsAskedFor) {
  const auto prompt = [&](json more) {
    return run_now(read_chat_request(*engine_, request(more)))->prompt.ids;
  };
  EXPECT_NE(prompt({{"thinking", true}}), prompt(json::object()));
  EXPECT_EQ(prompt({{"reasoning_effort", "high"}}), prompt({{"thinking", true}}));
  EXPECT_EQ(prompt({{"reasoning_effort", "none"}}), prompt(json::object()));
  EXPECT_EQ(prompt({{"reasoning_effort", "high"}, {"thinking", false}}), prompt(json::object()));
}

TEST_F(OpenAi, AnAnswerCanBeContinued) {
  const json messages = json::array(
      {{{"role", "user"}, {"content", "hi"}}, {{"role", "assistant"}, {"content", "The answer "}}});
  const auto read = run_now(
      read_chat_request(*engine_, request({{"messages", messages}, {"continue_final_message", true}})));
  ASSERT_OK(read);
  const auto closed = run_now(read_chat_request(*engine_, request({{"messages", messages}})));
  ASSERT_OK(closed);
  EXPECT_LT(read->prompt.size(), closed->prompt.size());
}

TEST_F(OpenAi, TheModelsOwnInstructionIsUsedWhereThereIsNone) {
  const auto plain = run_now(read_chat_request(*engine_, request()))->prompt.ids;
  const auto system = run_now(read_chat_request(*engine_, request(), "Be brief."))->prompt.ids;
  EXPECT_GT(system.size(), plain.size());
  json own = request();
  own["messages"].insert(own["messages"].begin(), json{{"role", "system"}, {"content", "Be long."}});
  EXPECT_EQ(run_now(read_chat_request(*engine_, own, "Be brief."))->prompt.ids,
            run_now(read_chat_request(*engine_, own))->prompt.ids);
}

TEST_F(OpenAi, TheSessionIsUsedAgain) {
  Session session = *Session::create(engine_->backend(), 256);
  ASSERT_OK(run(request(), session));
  const auto again = run(request(), session);
  ASSERT_OK(again);
  const json& usage = (*again)["usage"];
  EXPECT_EQ(usage["prompt_tokens_details"]["cached_tokens"], usage["prompt_tokens"].get<int>() - 1);
}

TEST_F(OpenAi, ACallerCanStop) {
  Session session = *Session::create(engine_->backend(), 256);
  stop_after_ = 2;
  const auto done = run(request({{"stream", true}, {"max_tokens", 100}}), session);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, ErrorKind::kCancelled);
  EXPECT_EQ(chunks_.size(), 2u);
}

TEST_F(OpenAi, APromptThatDoesNotFitIsRefusedBeforeAnythingIsSent) {
  Session session = *Session::create(engine_->backend(), 8);
  const auto done = run(request({{"stream", true}}), session);
  ASSERT_FALSE(done);
  EXPECT_TRUE(done.error().message.contains("context of 8")) << done.error().message;
  EXPECT_TRUE(chunks_.empty());
}

TEST_F(OpenAi, WrongFieldsAreNamed) {
  const std::pair<const char*, json> wrong[] = {
      {"messages", 5},
      {"messages", json::array()},
      {"messages", nullptr},
      {"tools", "x"},
      {"stream", "yes"},
      {"stream_options", 1},
      {"max_tokens", 0},
      {"max_tokens", -1},
      {"max_tokens", 1.5},
      {"max_completion_tokens", "many"},
      {"temperature", "warm"},
      {"temperature", -1},
      {"temperature", 1e39},
      {"top_p", 1.5},
      {"top_k", -3},
      {"min_p", "x"},
      {"presence_penalty", 3},
      {"frequency_penalty", -3},
      {"repetition_penalty", 0},
      {"seed", 1.5},
      {"seed", "x"},
      {"seed", 1e300},
      {"stop", 5},
      {"stop", json{"a", 5}},
      {"stop", ""},
      {"logprobs", 3},
      {"top_logprobs", 2},
      {"logit_bias", json::array()},
      {"logit_bias", {{"x", 1}}},
      {"logit_bias", {{"99999999", 1}}},
      {"logit_bias", {{"5", "x"}}},
      {"logit_bias", {{"5", 101}}},
      {"reasoning_effort", 5},
      {"thinking", "yes"},
      {"continue_final_message", 1},
      {"response_format", "json"},
      {"n", "x"},
  };
  for (const auto& [field, value] : wrong) {
    const Error e = error(request({{field, value}}));
    EXPECT_TRUE(e.message.contains(format_text("'{}'", field))) << field << ": " << e.message;
    EXPECT_EQ(e.kind, ErrorKind::kInvalid) << field;
  }
  const std::pair<const char*, json> unsupported[] = {
      {"n", 2},
      {"response_format", {{"type", "json_object"}}},
      {"response_format", {{"type", "json_schema"}}},
      {"tool_choice", "required"},
      {"tool_choice", {{"type", "function"}}},
      {"reasoning_effort", "extreme"},
  };
  for (const auto& [field, value] : unsupported) {
    const Error e = error(request({{field, value}}));
    EXPECT_TRUE(e.message.contains(format_text("'{}'", field))) << field << ": " << e.message;
    EXPECT_EQ(e.kind, ErrorKind::kUnsupported) << field;
  }
  for (const json& odd : {json(5), json::array(), json()}) EXPECT_NE(error(odd).message, "");
  EXPECT_NE(error(request({{"messages", json{5}}})).message, "");
  const json fine = request({{"unknown", 5}, {"n", 1}, {"response_format", {{"type", "text"}}}});
  ASSERT_OK(run_now(read_chat_request(*engine_, fine)));
}

TEST(OpenAiError, HasTheirShape) {
  const json error = openai_error({ErrorKind::kNotFound, "No model."}, "model_not_found");
  EXPECT_EQ(error["error"]["message"], "No model.");
  EXPECT_EQ(error["error"]["type"], "invalid_request_error");
  EXPECT_EQ(error["error"]["code"], "model_not_found");
  EXPECT_EQ(openai_error({ErrorKind::kMemory, "x"})["error"]["type"], "server_error");
  EXPECT_EQ(openai_error({ErrorKind::kMemory, "x"})["error"]["code"], nullptr);
}

}  // namespace
}  // namespace bezel

// The embedded model: greedy answers to held-out questions are those that transformers gave with the weights
// before rounding, on the CPU and on the GPU.
#ifndef __wasm__
#include <algorithm>
#include <map>

#include "gpu_fixture.h"
#include "models.h"

namespace bezel {
namespace {

constexpr const char* kNano = "models/nano.gguf";
constexpr u32 kEnds[] = {16, 9};  // <turn|>, <|tool_response>

struct Question {
  std::string skill;
  std::vector<u32> ids, given;
};

std::vector<Question> text_questions() {
  std::vector<Question> out;
  for (const auto& q : read_json(data_path("nano/questions.json"))) {
    if (!q.contains("given_ids")) continue;
    out.push_back({q["skill"], q["ids"].get<std::vector<u32>>(), q["given_ids"].get<std::vector<u32>>()});
  }
  return out;
}

std::vector<u32> answer(Backend& backend, const Question& question) {
  auto session = Session::create(backend, 512);
  std::vector<u32> next = question.ids, out;
  EXPECT_TRUE(session.has_value());
  while (session && out.size() <= question.given.size()) {
    if (!run_now(session->feed(next, {}, 1))) break;
    const u32 token = session->candidates().best[0].id;
    if (std::ranges::contains(kEnds, token)) break;
    out.push_back(token);
    next = {token};
  }
  return out;
}

// All but stories, whose names are a matter of chance: there, rounding the weights to six bits is enough to
// turn one.
TEST(Nano, AnswersLikeTransformers) {
  auto model = load_model(kNano);
  ASSERT_TRUE(model.backend);
  u32 asked = 0;
  for (const Question& q : text_questions()) {
    if (q.skill == "stories") continue;
    ++asked;
    EXPECT_EQ(answer(*model.backend, q), q.given) << q.skill;
  }
  EXPECT_GE(asked, 70u);
}

// The short ones, two of each skill: a software adapter needs a tenth of a second a token.
TEST(Nano, AnswersOnTheGpu) {
  LoadOptions options;
  options.device = test_device();
  auto model = load_model(kNano, options);
  ASSERT_TRUE(model.backend);
  std::map<std::string, int> asked;
  int all = 0;
  for (const Question& q : text_questions()) {
    if (q.skill == "stories" || q.given.size() > 9 || q.ids.size() > 32 || ++asked[q.skill] > 2) continue;
    ++all;
    EXPECT_EQ(answer(*model.backend, q), q.given) << q.skill;
  }
  EXPECT_GE(all, 12);
}

}  // namespace
}  // namespace bezel
#endif

#ifndef __wasm__

#include "base/format_text.h"
#include "plan_fixture.h"

namespace bezel {
namespace {

constexpr u32 kVocab = 300;

struct Settings {
  f64 temperature = 1, top_k = 64, top_p = 1, min_p = 0;
  std::vector<f64> suppressed = {};
};

class SampleOp : public PlanTest {
 protected:
  // Draws all over [0, 1), each with the reference's choice, place and position.
  void check(const std::vector<f64>& row, u32 k, const Settings& settings) {
    SCOPED_TRACE(format_text("temperature {}, top_k {}, top_p {}, min_p {}, {} suppressed",
                             settings.temperature, settings.top_k, settings.top_p, settings.min_p,
                             settings.suppressed.size()));
    for (const f64 uniform : {0.0, 0.013, 0.21, 0.497, 0.75, 0.93, 0.9991}) {
      start();
      Graph g;
      std::vector<f64> draw{
          settings.temperature, settings.top_k, settings.top_p,
          settings.min_p,       uniform,        static_cast<f64>(settings.suppressed.size())};
      draw.insert(draw.end(), settings.suppressed.begin(), settings.suppressed.end());
      const Tensor ids = input(g, 1, {5}), positions = input(g, 1, {262'142});
      const Tensor top = g.top_k(input(g, static_cast<u32>(row.size()), row), k);
      const u32 cols = static_cast<u32>(draw.size());
      const Tensor out = g.sample(top, input(g, cols, std::move(draw)), ids, positions);
      g.set_name("row", Graph::cols(out, 0, top.cols));
      g.set_name("choice", Graph::cols(out, top.cols, 1));
      g.set_name("next token", ids);
      g.set_name("next position", positions);
      expect_same(g, 1e-6);
    }
  }

  std::vector<f64> random_row() {
    std::vector<f64> row;
    for (u32 i = 0; i < kVocab; ++i) row.push_back(static_cast<f32>(random_.normal() * 3));
    return row;
  }
};

TEST_F(SampleOp, ChoosesAsTheReferenceDoes) {
  const auto row = random_row();
  check(row, 64, {});
  check(row, 64, {.temperature = 0});
  check(row, 128, {.temperature = 1.7, .top_k = 100});
  check(row, 64, {.temperature = 0.3, .top_p = 0.95});
  check(row, 32, {.top_k = 20, .top_p = 0.6, .min_p = 0.1});
  check(row, 8, {.temperature = 2, .top_k = 1});
  check(row, 1, {.temperature = 0});
  check(row, 16, {.top_k = 8, .min_p = 1});
}

TEST_F(SampleOp, PassesOverSuppressedTokens) {
  auto row = random_row();
  row[7] = 20, row[40] = 19, row[41] = 18.5, row[100] = 18;
  for (const f64 temperature : {0.0, 1.5}) {
    check(row, 16, {.temperature = temperature, .top_k = 4, .suppressed = {7}});
    check(row, 16, {.temperature = temperature, .top_k = 4, .top_p = 0.8, .suppressed = {41, 7, 299}});
  }
  check(row, 2, {.temperature = 0, .suppressed = {7, 40}});  // nothing is left: some token all the same
}

TEST_F(SampleOp, ImpossibleTokensAreNotChosen) {
  std::vector<f64> row(kVocab, -std::numeric_limits<f64>::infinity());
  row[3] = 1, row[200] = 2;
  check(row, 8, {});
  check(row, 8, {.temperature = 0, .suppressed = {200}});
}

}  // namespace
}  // namespace bezel
#endif

#ifndef __wasm__

#include "base/format_text.h"
#include "plan_fixture.h"

namespace bezel {
namespace {

// Columns, values and the logarithm of the sum, all three as the reference has them.
class TopK : public PlanTest {
 protected:
  void check(const std::vector<f64>& row, u32 k) {
    SCOPED_TRACE(format_text("{} of {}", k, row.size()));
    Graph g;
    start();
    check(g, g.top_k(input(g, static_cast<u32>(row.size()), row), k));
  }

  void check(Graph& g, const Tensor& top) {
    const u32 k = top.cols / 2;
    // Apart, so that each is compared by its own size.
    g.set_name("columns", Graph::cols(top, 0, k));
    g.set_name("values", Graph::cols(top, k, k));
    g.set_name("log_total", Graph::cols(top, 2 * k, 1));
    expect_same(g, 1e-6);
  }
};

TEST_F(TopK, OfAnyRow) {
  for (const u32 cols : {1u, 7u, 63u, 1023u, 1024u, 1025u, 5000u}) {
    std::vector<f64> row;
    for (u32 i = 0; i < cols; ++i) row.push_back(random_.normal() * 5);
    for (const u32 k : {1u, 3u, 64u, 128u}) check(row, k);
  }
}

TEST_F(TopK, OfSeveralRowsOfAView) {
  Graph g;
  const Tensor x = Graph::cols(random_input(g, 3, 2100), 17, 2049);
  check(g, g.top_k(x, 5));
}

TEST_F(TopK, TiesGoToTheLowerColumn) {
  check(std::vector<f64>(3000, 0.25), 40);
  std::vector<f64> row(2500, -1);
  for (const u32 i : {3u, 900u, 1024u, 1500u, 2499u}) row[i] = 2;
  row[700] = 0.0, row[1300] = -0.0;
  check(row, 8);
}

TEST_F(TopK, ManySlices) {
  std::vector<f64> row(300'001);
  for (f64& v : row) v = random_.below(1000);
  check(row, 9);
}

constexpr f64 kInfinity = std::numeric_limits<f64>::infinity();
constexpr f64 kNan = std::numeric_limits<f64>::quiet_NaN();

TEST_F(TopK, InfinitiesAreNumbersToo) {
  std::vector<f64> row(1500, -kInfinity);
  check(row, 4);
  row[1400] = 3, row[20] = -7;
  check(row, 4);
  row[1450] = kInfinity;
  check(row, 4);
}

TEST_F(TopK, WhatIsNotANumberComesFirst) {
  for (const std::size_t at : {0, 5, 1200}) {
    std::vector<f64> row(1300, 2.5);
    row[at] = kNan, row[30] = kInfinity;
    check(row, 1);
    check(row, 3);
    row[1299] = -kNan;
    check(row, 3);
  }
}

TEST_F(TopK, SoftCapKeepsWhatIsNotANumber) {
  Graph g;
  std::vector<f64> row(100, 1.0);
  row[70] = kNan;
  check(g, g.top_k(g.soft_cap(input(g, 100, row), 30), 1));
}

}  // namespace
}  // namespace bezel
#endif

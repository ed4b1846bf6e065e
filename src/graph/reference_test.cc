#include "graph/reference.h"

#include <cmath>
#include <numbers>

#include "base/random.h"
#include "gguf/quant.h"
#include "support.h"

namespace bezel {
namespace {

using Numbers = std::vector<f64>;

Numbers random_numbers(u64 count, u64 seed, f64 size = 1) {
  Random random(seed);
  Numbers out(count);
  for (f64& v : out) v = size * random.normal();
  return out;
}

// Weights made from numbers, and what those numbers are after quantisation.
class FakeWeights final : public WeightBytes {
 public:
  Bytes bytes(u32 index) const override { return tensors_[index]; }

  Weight add(DType type, u32 rows, u32 cols, const Numbers& numbers, u32 depth = 1) {
    EXPECT_EQ(numbers.size(), u64{rows} * cols * depth);
    const std::vector<f32> values(numbers.begin(), numbers.end());
    std::vector<std::byte>& out = tensors_.emplace_back(dtype_bytes(type, values.size()));
    quantize(type, values, out);
    return {static_cast<u32>(tensors_.size() - 1), type, rows, cols, depth};
  }

  Numbers values(const Weight& weight) const {
    std::vector<f32> out(u64{weight.rows} * weight.cols * weight.depth);
    dequantize(weight.type, tensors_[weight.index], out);
    return {out.begin(), out.end()};
  }

 private:
  std::vector<std::vector<std::byte>> tensors_;
};

// A graph with its weights, inputs and states; run() gives one tensor.
struct Bench {
  Tensor input(u32 rows, u32 cols, Numbers values) {
    inputs.push_back(std::move(values));
    return graph.input(static_cast<u32>(inputs.size() - 1), rows, cols);
  }
  Tensor state(u32 rows, u32 cols) {
    states.emplace_back(u64{rows} * cols);
    return graph.state(static_cast<u32>(states.size() - 1), rows, cols);
  }
  Numbers run(const Tensor& result) {
    reference.run(graph, inputs, states);
    return reference.values(result);
  }

  Graph graph;
  FakeWeights weights;
  Reference reference{weights};
  std::vector<Numbers> inputs, states;
};

void expect_near(const Numbers& got, const Numbers& expected, f64 tolerance = 1e-12) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], tolerance) << "element " << i;
}

TEST(Reference, ResultsLiveUntilTheyWereRead) {
  Bench b;
  const Tensor x = b.input(1, 100, random_numbers(100, 1));
  const Tensor first = b.graph.add(x, x);
  const Tensor last = b.graph.add(b.graph.add(b.graph.add(first, x), x), x);
  EXPECT_EQ(Reference::bytes_of(b.graph), 300 * sizeof(f64));  // the input and two results
  EXPECT_NEAR(b.run(last)[7], 5 * b.inputs[0][7], 1e-12);
  b.graph.set_name("first", first);
  EXPECT_EQ(Reference::bytes_of(b.graph), 400 * sizeof(f64));
  b.run(last);
  EXPECT_NEAR(b.reference.values(first)[7], 2 * b.inputs[0][7], 1e-12);
}

TEST(Reference, ViewsOfViews) {
  Bench b;
  const Tensor x = b.input(4, 5, {0,  1,  2,  3,  4,   //
                                  10, 11, 12, 13, 14,  //
                                  20, 21, 22, 23, 24,  //
                                  30, 31, 32, 33, 34});
  const Tensor inner = Graph::cols(Graph::rows(Graph::cols(x, 1, 4), 1, 3), 1, 2);
  EXPECT_EQ(b.run(inner), (Numbers{12, 13, 22, 23, 32, 33}));
  EXPECT_EQ(b.reference.values(Graph::rows(inner, 2, 1)), (Numbers{32, 33}));
}

TEST(Reference, EmbedRowsTakesAndScalesRows) {
  Bench b;
  const Weight table = b.weights.add(DType::kF32, 3, 2, {1, 2, 3, 4, 5, 6});
  // The ids are the second column of the input.
  const Tensor ids = Graph::cols(b.input(4, 2, {9, 2, 9, 0, 9, 1, 9, 2}), 1, 1);
  EXPECT_EQ(b.run(b.graph.embed_rows(ids, table, 0.5f)), (Numbers{2.5, 3, 0.5, 1, 1.5, 2, 2.5, 3}));
}

TEST(Reference, EmbedRowsOfQuantisedTable) {
  Bench b;
  const Weight table = b.weights.add(DType::kQ8_0, 5, 64, random_numbers(5 * 64, 1));
  const Numbers all = b.weights.values(table);
  const Numbers got = b.run(b.graph.embed_rows(b.input(1, 1, {3}), table, 1));
  EXPECT_EQ(got, Numbers(all.begin() + 3 * 64, all.begin() + 4 * 64));
}

Numbers naive_mat_mul(const Numbers& weight, const Numbers& x, u32 rows, u32 cols, f64 scale) {
  Numbers out;
  for (std::size_t t = 0; t < x.size() / cols; ++t) {
    for (u32 r = 0; r < rows; ++r) {
      long double sum = 0;
      for (u32 c = 0; c < cols; ++c) sum += static_cast<long double>(weight[r * cols + c]) * x[t * cols + c];
      out.push_back(static_cast<f64>(scale * sum));
    }
  }
  return out;
}

TEST(Reference, MatMulByHand) {
  Bench b;
  const Weight weight = b.weights.add(DType::kF32, 2, 3, {1, 2, 3, -1, 0, 4});
  const Weight four = b.weights.add(DType::kF32, 1, 1, {4});
  // A view: rows 1 and 2, columns 1 to 3 of the input.
  const Tensor x = Graph::rows(Graph::cols(b.input(3, 4,
                                                   {0, 0, 0, 0,  //
                                                    0, 1, 1, 1,  //
                                                    0, 2, 0, -1}),
                                           1, 3),
                               1, 2);
  EXPECT_EQ(b.run(b.graph.mat_mul(x, weight)), (Numbers{6, 3, -1, -6}));
  EXPECT_EQ(b.run(b.graph.mat_mul(x, weight, four, 0.5f)), (Numbers{12, 6, -2, -12}));
}

// Widths around the eight partial sums, and block types at theirs.
TEST(Reference, MatMulOfEveryWidthAndType) {
  struct Case {
    DType type;
    u32 cols;
  };
  for (const auto [type, cols] :
       {Case{DType::kF32, 1}, Case{DType::kF32, 7}, Case{DType::kF32, 8}, Case{DType::kF32, 19},
        Case{DType::kF16, 33}, Case{DType::kBF16, 24}, Case{DType::kQ8_0, 96}, Case{DType::kQ4_0, 32},
        Case{DType::kQ5_0, 64}, Case{DType::kQ4_K, 512}, Case{DType::kQ6_K, 256}}) {
    Bench b;
    const Weight weight = b.weights.add(type, 5, cols, random_numbers(u64{5} * cols, cols));
    const Numbers x = random_numbers(u64{3} * cols, 7);
    const Tensor in = b.input(3, cols, x);
    SCOPED_TRACE(std::string(dtype_name(type)));
    expect_near(b.run(b.graph.mat_mul(in, weight, {}, 2)),
                naive_mat_mul(b.weights.values(weight), x, 5, cols, 2));
  }
}

TEST(Reference, RmsNormOfGroups) {
  Bench b;
  const Weight weight = b.weights.add(DType::kF32, 1, 2, {1, 10});
  const Tensor x = b.input(1, 4, {3, 4, 0, 2});
  // mean(9, 16) = 12.5, mean(0, 4) = 2.
  const f64 first = 2 / std::sqrt(12.5), second = 2 / std::sqrt(2.0);
  expect_near(b.run(b.graph.rms_norm(x, weight, 0, 2, 2)), {3 * first, 40 * first, 0, 20 * second});
}

TEST(Reference, RmsNormOfWholeRowsWithEps) {
  Bench b;
  const Tensor x = Graph::cols(b.input(2, 3, {1, 2, 2, 9, 0, 0}), 1, 2);
  // mean(4, 4) + 5 = 9; a row of zeros stays zero.
  expect_near(b.run(b.graph.rms_norm(x, {}, 5)), {2. / 3, 2. / 3, 0, 0});
}

TEST(Reference, RopeFarFromTheBeginning) {
  constexpr u32 kHead = 8, kHeads = 2;
  const Numbers positions{0, 1, 4095, 131071};
  Numbers frequencies;
  for (u32 i = 0; i < kHead / 2; ++i) frequencies.push_back(std::pow(1e4, -2.0 * i / kHead));
  frequencies.back() /= 1e30;  // a pair that does not turn
  Bench b;
  const Numbers x = random_numbers(positions.size() * kHead * kHeads, 3);
  const Tensor in = b.input(4, kHead * kHeads, x);
  const Numbers got =
      b.run(b.graph.rope(in, b.input(4, 1, positions), kHead, b.graph.add_table(frequencies)));
  for (std::size_t t = 0; t < positions.size(); ++t) {
    for (u32 head = 0; head < kHeads; ++head) {
      for (u32 i = 0; i < kHead / 2; ++i) {
        const long double angle = positions[t] * std::pow(1e4L, -2.0L * i / kHead) / (i == 3 ? 1e30L : 1);
        const std::size_t at = t * kHead * kHeads + head * kHead + i;
        const long double low = x[at], high = x[at + kHead / 2];
        EXPECT_NEAR(got[at], static_cast<f64>(low * std::cos(angle) - high * std::sin(angle)), 1e-10) << at;
        EXPECT_NEAR(got[at + 4], static_cast<f64>(low * std::sin(angle) + high * std::cos(angle)), 1e-10)
            << at;
        if (i == 3) EXPECT_EQ(got[at], x[at]);
      }
    }
  }
}

// Values of the vision tower's rotation, computed independently: half a head turns by x = 3, half by y = 5.
TEST(Reference, RopeInTwoDimensions) {
  using Known = std::vector<std::pair<u32, f64>>;
  for (const auto& [size, known] : {std::pair{64u, Known{{0, -0.052954},
                                                         {1, -0.238512},
                                                         {16, -0.260762},
                                                         {31, 0.509599},
                                                         {32, 0.880440},
                                                         {33, 0.010110},
                                                         {48, -0.277266},
                                                         {63, 1.047748}}},
                                    {72u, Known{{0, -0.050990},
                                                {17, 0.230444},
                                                {18, -0.259288},
                                                {36, 0.878282},
                                                {54, -0.276094},
                                                {71, 1.046315}}}}) {
    Bench b;
    Numbers x, frequencies;
    for (u32 i = 0; i < size; ++i) x.push_back(f64(i + 1) / size);
    for (u32 i = 0; i < size / 4; ++i) frequencies.push_back(std::pow(100.0, -4.0 * i / size));
    const u32 table = b.graph.add_table(frequencies);
    const Numbers out = b.run(b.graph.rope(b.input(1, size, x), b.input(1, 2, {3, 5}), size / 2, table));
    for (const auto& [i, value] : known) EXPECT_NEAR(out[i], value, 1e-6) << i;
  }
}

TEST(Reference, BoundsOfAProduct) {
  Bench b;
  const Tensor x = b.input(2, 2, {5, 1, -7, std::nan("")});
  const Weight w = b.weights.add(DType::kF32, 2, 2, {1, 1, 1, 0});
  const Numbers out = b.run(b.graph.mat_mul(x, w, {}, 2, {-3, 4, -5, 9}));
  EXPECT_EQ(Numbers(out.begin(), out.begin() + 2), (Numbers{9, 8}));
  EXPECT_TRUE(std::isnan(out[2]));
  EXPECT_TRUE(std::isnan(out[3]));  // zero times what is not a number
}

TEST(Reference, PoolsSquares) {
  Bench b;
  const Tensor x = b.input(8, 1, {1, 2, 3, 4, 5, 6, 7, 8});  // 4 wide, 2 high
  EXPECT_EQ(b.run(b.graph.average_pool(x, 4, 2, 2)), (Numbers{7, 11}));
}

TEST(Reference, LayerNormAndShift) {
  Bench b;
  const Tensor x = b.input(1, 4, {1, 3, 1, 3});
  const Weight weight = b.weights.add(DType::kF32, 1, 4, {1, 1, 2, 2});
  const Weight bias = b.weights.add(DType::kF32, 1, 4, {0, 1, 0, 1});
  const Tensor normal = b.graph.layer_norm(x, weight, bias, 0);
  EXPECT_EQ(b.run(normal), (Numbers{-1, 2, -2, 3}));
  EXPECT_EQ(b.run(b.graph.shift_scale(normal, bias, -1, weight)), (Numbers{-1, 1, -4, 4}));
}

TEST(Reference, FullAttentionWeighsAllRows) {
  Bench b;
  const f64 third = std::log(3.0);
  const Tensor q = b.input(2, 4, {third, 0, 0, 0, 0, 0, 0, 0});
  const Tensor k = b.input(2, 4, {1, 0, 0, 0, 0, 0, 0, 0});
  const Tensor v = b.input(2, 4, {4, 0, 8, 1, 0, 4, 0, 1});
  expect_near(b.run(b.graph.full_attention(q, k, v, 4)), {3, 1, 6, 1, 2, 2, 4, 1});
}

TEST(Reference, KvWriteWrapsAndKeepsTheRest) {
  Bench b;
  const Tensor ring = b.state(4, 2);
  b.states[0] = {90, 91, 92, 93, 94, 95, 96, 97};
  const Tensor x = b.input(3, 2, {1, 2, 3, 4, 5, 6});
  b.graph.kv_write(x, b.input(3, 1, {7, 8, 9}), ring);
  EXPECT_EQ(b.run(ring), (Numbers{3, 4, 5, 6, 94, 95, 1, 2}));
  EXPECT_EQ(b.states[0], (Numbers{3, 4, 5, 6, 94, 95, 1, 2}));  // states outlive the run
}

struct AttentionCase {
  u32 heads, kv_heads, window, slots, before, tokens;  // `before`: tokens written in earlier runs
};

class ReferenceAttention : public testing::TestWithParam<AttentionCase> {};

// The whole score matrix with a mask, over a history that forgets nothing.
Numbers naive_attention(const AttentionCase& c, u32 size, const Numbers& q, const Numbers& keys,
                        const Numbers& values) {
  const u32 kv_cols = c.kv_heads * size, positions = c.before + c.tokens;
  Numbers out;
  for (u32 t = 0; t < c.tokens; ++t) {
    const u32 p = c.before + t;
    for (u32 h = 0; h < c.heads; ++h) {
      const u32 kv = h / (c.heads / c.kv_heads) * size;
      Numbers scores;
      f64 largest = -INFINITY, sum = 0;
      for (u32 j = 0; j < positions; ++j) {
        f64 score = -INFINITY;
        if (j <= p && (c.window == 0 || p - j < c.window)) {
          score = 0;
          for (u32 i = 0; i < size; ++i)
            score += q[(t * c.heads + h) * size + i] * keys[j * kv_cols + kv + i];
        }
        scores.push_back(score);
        largest = std::max(largest, score);
      }
      for (f64& s : scores) sum += s = std::exp(s - largest);
      for (u32 i = 0; i < size; ++i) {
        f64 mixed = 0;
        for (u32 j = 0; j < positions; ++j) mixed += scores[j] / sum * values[j * kv_cols + kv + i];
        out.push_back(mixed);
      }
    }
  }
  return out;
}

TEST_P(ReferenceAttention, EqualsTheMaskedMatrix) {
  const AttentionCase& c = GetParam();
  constexpr u32 kSize = 6;
  const u32 kv_cols = c.kv_heads * kSize, q_cols = c.heads * kSize;
  const Numbers q = random_numbers(u64{c.tokens} * q_cols, 11);
  const Numbers keys = random_numbers(u64{c.before + c.tokens} * kv_cols, 12);
  const Numbers values = random_numbers(u64{c.before + c.tokens} * kv_cols, 13);
  std::vector<Numbers> states(2, Numbers(u64{c.slots} * kv_cols, NAN));
  FakeWeights weights;
  Reference reference(weights);
  Numbers got;
  // Earlier tokens one by one, the batch at the end at once.
  for (u32 at = 0; at < c.before + c.tokens;) {
    const u32 n = at < c.before ? 1 : c.tokens;
    const auto part = [&](const Numbers& x) {
      return Numbers(x.begin() + at * kv_cols, x.begin() + (at + n) * kv_cols);
    };
    std::vector<Numbers> inputs{part(keys), part(values), Numbers(n), q};
    for (u32 t = 0; t < n; ++t) inputs[2][t] = at + t;
    Graph g;
    const Tensor k = g.input(0, n, kv_cols), v = g.input(1, n, kv_cols), positions = g.input(2, n, 1);
    const Tensor key_ring = g.state(0, c.slots, kv_cols), value_ring = g.state(1, c.slots, kv_cols);
    g.kv_write(k, positions, key_ring);
    g.kv_write(v, positions, value_ring);
    Tensor out{};
    if (at == c.before) {
      out = g.attention(g.input(3, n, q_cols), key_ring, value_ring, positions, positions, c.heads,
                        c.kv_heads, kSize, c.window);
    }
    reference.run(g, inputs, states);
    if (at == c.before) got = reference.values(out);
    at += n;
  }
  expect_near(got, naive_attention(c, kSize, q, keys, values));
}

INSTANTIATE_TEST_SUITE_P(Shapes, ReferenceAttention,
                         testing::Values(AttentionCase{1, 1, 0, 1, 0, 1},     // one token sees itself
                                         AttentionCase{4, 2, 0, 16, 5, 6},    // global, grouped heads
                                         AttentionCase{8, 1, 0, 9, 0, 9},     // one KV head for all
                                         AttentionCase{2, 2, 1, 4, 3, 4},     // a window of itself alone
                                         AttentionCase{4, 2, 5, 9, 2, 5},     // the window not yet full
                                         AttentionCase{4, 2, 5, 9, 23, 5},    // wrapped, the shortest ring
                                         AttentionCase{6, 3, 8, 20, 47, 3}),  // wrapped, room to spare
                         [](const auto& param) { return "Case" + std::to_string(param.index); });

TEST(Reference, AttentionWithHugeScoresStaysFinite) {
  Bench b;
  const Tensor keys = b.state(2, 2), values = b.state(2, 2);
  b.states = {{1000, 0, 0, 1000}, {1, 2, 3, 4}};
  const Tensor q = b.input(1, 2, {1000, -1000}), at = b.input(1, 1, {1});
  EXPECT_EQ(b.run(b.graph.attention(q, keys, values, at, at, 1, 1, 2, 0)), (Numbers{1, 2}));
}

TEST(Reference, AttentionSeesAheadToTheLast) {
  Bench b;
  const Tensor keys = b.state(4, 1), values = b.state(4, 1);
  b.states = {{0, 0, 0, 0}, {1, 2, 4, 8}};
  const Tensor q = b.input(2, 1, {1, 1});
  // Position 1 sees 0 to 3; position 2, with a window of two, 1 to 3.
  const Tensor at = b.input(2, 1, {1, 2}), last = b.input(2, 1, {3, 3});
  EXPECT_EQ(b.run(b.graph.attention(q, keys, values, at, last, 1, 1, 1, 0)), (Numbers{3.75, 3.75}));
  EXPECT_DOUBLE_EQ(b.run(b.graph.attention(q, keys, values, at, last, 1, 1, 1, 2))[1], 14.0 / 3);
}

TEST(Reference, SpliceTakesSoftRows) {
  Bench b;
  const Tensor x = b.input(3, 2, {1, 2, 3, 4, 5, 6}), soft = b.input(3, 2, {7, 8, 9, 10, 11, 12});
  EXPECT_EQ(b.run(b.graph.splice(x, soft, b.input(3, 1, {0, 1, 0}))), (Numbers{1, 2, 9, 10, 5, 6}));
}

TEST(Reference, AddScalesAndTakesViews) {
  Bench b;
  const Weight three = b.weights.add(DType::kF32, 1, 1, {3});
  const Tensor x = b.input(2, 3, {1, 2, 3, 4, 5, 6});
  const Tensor a = Graph::cols(x, 0, 2), c = Graph::cols(x, 1, 2);
  EXPECT_EQ(b.run(b.graph.add(a, c)), (Numbers{3, 5, 9, 11}));
  EXPECT_EQ(b.run(b.graph.add(a, c, 0.5f, three)), (Numbers{4.5, 7.5, 13.5, 16.5}));
}

TEST(Reference, GeluMulAtExtremes) {
  Bench b;
  const Numbers gate{0, 1, -1, 40, -40, 1e6, -1e6, 1e200, -1e200};
  const Tensor g = b.input(1, 9, gate), up = b.input(1, 9, {5, 2, 2, 2, 2, 2, 2, 0.5, 1});
  const Numbers got = b.run(b.graph.gelu_mul(g, up));
  const f64 u = std::sqrt(2 / std::numbers::pi) * 1.044715;
  expect_near({got.begin(), got.begin() + 7}, {0, 1 + std::tanh(u), -(1 - std::tanh(u)), 80, 0, 2e6, 0});
  EXPECT_EQ(got[7], 0.5e200);
  EXPECT_EQ(got[8], 0);
}

TEST(Reference, TopExpertsOrdersAndRenormalises) {
  Bench b;
  const f64 two = std::log(2.0), three = std::log(3.0);
  const Tensor logits = b.input(3, 4,
                                {0, three, two, 0,  // 1 and 2 in the order of their weights
                                 5, 5, 5, 5,        // ties go to the lower index
                                 -1e300, 7, -1e300, 7});
  const auto [ids, weights] = b.graph.top_experts(logits, 2);
  EXPECT_EQ(b.run(ids), (Numbers{1, 2, 0, 1, 1, 3}));
  expect_near(b.reference.values(weights), {0.6, 0.4, 0.5, 0.5, 0.5, 0.5});
}

TEST(Reference, TopExpertsMayBeAll) {
  Bench b;
  const auto [ids, weights] = b.graph.top_experts(b.input(1, 3, {0, std::log(2.0), 0}), 3);
  EXPECT_EQ(b.run(ids), (Numbers{1, 0, 2}));
  expect_near(b.reference.values(weights), {0.5, 0.25, 0.25});
}

TEST(Reference, ExpertMatMulOfBothLayouts) {
  Bench b;
  const Weight experts = b.weights.add(DType::kF32, 1, 2, {1, 0, 0, 1, 10, 20}, 3);
  const Weight scales = b.weights.add(DType::kF32, 1, 3, {1, 2, 100});
  const Tensor ids = b.input(2, 2, {2, 0, 1, 2});
  const Tensor per_token = b.input(2, 2, {1, 2, 3, 4});
  EXPECT_EQ(b.run(b.graph.expert_mat_mul(per_token, ids, experts)), (Numbers{50, 1, 4, 110}));
  EXPECT_EQ(b.run(b.graph.expert_mat_mul(per_token, ids, experts, scales)), (Numbers{5000, 1, 8, 11000}));
  const Tensor per_pair = b.input(4, 2, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(b.run(b.graph.expert_mat_mul(per_pair, ids, experts)), (Numbers{50, 3, 6, 230}));
  EXPECT_EQ(b.run(b.graph.expert_mat_mul(per_pair, ids, experts, scales)), (Numbers{5000, 3, 12, 23000}));
}

TEST(Reference, ExpertMatMulOfQuantisedExperts) {
  constexpr u32 kRows = 3, kCols = 64, kExperts = 5;
  Bench b;
  const Weight experts =
      b.weights.add(DType::kQ8_0, kRows, kCols, random_numbers(kRows * kCols * kExperts, 1), kExperts);
  const Numbers all = b.weights.values(experts), x = random_numbers(kCols, 2);
  const Numbers got = b.run(b.graph.expert_mat_mul(b.input(1, kCols, x), b.input(1, 2, {4, 1}), experts));
  Numbers expected;
  for (const u32 e : {4u, 1u}) {
    const auto first = all.begin() + e * kRows * kCols;
    for (const f64 v : naive_mat_mul(Numbers(first, first + kRows * kCols), x, kRows, kCols, 1))
      expected.push_back(v);
  }
  expect_near(got, expected);
}

TEST(Reference, ExpertSumWeighs) {
  Bench b;
  const Tensor y = b.input(4, 2, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor weights = b.input(2, 2, {0.5, 0.5, 0.25, 1});
  EXPECT_EQ(b.run(b.graph.expert_sum(y, weights)), (Numbers{2, 3, 8.25, 9.5}));
}

TEST(Reference, SoftCapBoundsWhatIsLarge) {
  Bench b;
  const Tensor x = b.input(1, 5, {0, 30, -30, 1e9, 1e-3});
  const f64 one = 30 * std::tanh(1.0);
  expect_near(b.run(b.graph.soft_cap(x, 30)), {0, one, -one, 30, 1e-3}, 1e-9);
}

TEST(Reference, RunsGraphAfterGraph) {
  Bench b;
  const Tensor x = b.input(1, 2, {1, 2});
  EXPECT_EQ(b.run(b.graph.add(x, x)), (Numbers{2, 4}));
  Graph other;
  const Tensor y = other.input(0, 2, 1);
  const Tensor sum = other.add(other.add(y, y), y);
  other.set_name("sum", sum);
  const std::vector<Numbers> inputs{{3, 4}};
  b.reference.run(other, inputs, {});
  ASSERT_NE(other.find("sum"), nullptr);
  EXPECT_EQ(b.reference.values(*other.find("sum")), (Numbers{9, 12}));
  EXPECT_EQ(other.find("none"), nullptr);
}

}  // namespace
}  // namespace bezel

#include "model/tower_weights.h"

#include <cmath>
#include <limits>

#include "memory_file.h"

namespace bezel {
namespace {

Result<ClampTable> read(const MemoryFile& from) {
  auto file = from.open();
  if (!file) return std::unexpected(file.error());
  return run_now(read_clamps(*file, "v."));
}

void expect_error(const MemoryFile& from, const std::string& message) {
  const auto clamps = read(from);
  ASSERT_FALSE(clamps);
  EXPECT_EQ(clamps.error().message, message);
}

constexpr f32 kInfinity = std::numeric_limits<f32>::infinity();

TEST(TowerWeights, ReadsBoundsAndDoesWithoutSome) {
  MemoryFile from;
  from.add("v.q.input_min", {1}, {-2});
  from.add("v.q.input_max", {1}, {3});
  from.add("v.q.output_min", {1}, {-4});
  from.add("v.q.output_max", {1}, {5});
  from.add("v.k.output_max", {1}, {0.5f});
  from.add("v.v.input_min", {1}, {-kInfinity});
  from.add("v.v.input_max", {1}, {kInfinity});
  from.add("a.q.input_max", {1}, {7});
  const auto clamps = read(from);
  ASSERT_OK(clamps);
  ASSERT_EQ(clamps->size(), 3u);
  EXPECT_EQ(clamps->at("v.q"), (Clamp{-2, 3, -4, 5}));
  EXPECT_EQ(clamps->at("v.k"), (Clamp{.out_max = 0.5f}));
  EXPECT_FALSE(clamps->at("v.v"));
}

TEST(TowerWeights, RefusesBoundsThatMakeNoSense) {
  {
    MemoryFile from;
    from.add("v.q.input_min", {2}, {-2, 1});
    expect_error(from, "Tensor 'v.q.input_min' must hold one F32 number, but holds 2 of type F32.");
  }
  {
    MemoryFile from;
    from.add("v.q.output_max", {1}, {1}, DType::kF16);
    expect_error(from, "Tensor 'v.q.output_max' must hold one F32 number, but holds 1 of type F16.");
  }
  {
    MemoryFile from;
    from.add("v.q.input_max", {1}, {std::nanf("")});
    expect_error(from, "Tensor 'v.q.input_max' holds a bound that is not a number.");
  }
  {
    MemoryFile from;
    from.add("v.q.output_min", {1}, {2});
    from.add("v.q.output_max", {1}, {1});
    expect_error(from, "The bounds of the output of 'v.q' are 2 and 1; the lower one is the larger.");
  }
}

TEST(TowerWeights, BindsLinearsWithTheirBounds) {
  MemoryFile from;
  from.add_linear("v.blk.0.q.weight", {8, 4});
  from.add("v.blk.0.q.input_max", {1}, {3});
  from.add_linear("v.blk.0.k.weight", {8, 4});
  from.add_linear("v.conv.weight", {4, 3, 2, 5});
  auto file = from.open();
  ASSERT_OK(file);
  const auto clamps = run_now(read_clamps(*file, "v."));
  ASSERT_OK(clamps);
  std::vector<TensorInfo> tensors;
  TowerBinder bind(*file, tensors, *clamps);
  bind.set_prefix("v.blk.0.");
  EXPECT_EQ(bind.linear("q", {8, 4}).clamp, (Clamp{.in_max = 3}));
  EXPECT_FALSE(bind.linear("k", {8, 4}).clamp);
  bind.set_prefix("v.");
  const Weight flat = bind.flattened("conv.weight", {4, 3, 2, 5}, {24, 5});
  EXPECT_TRUE(bind.status());
  EXPECT_EQ(flat.cols, 24u);
  EXPECT_EQ(tensors[flat.index].row_bytes(), 96u);
  EXPECT_FALSE(bind.linear("none", {8, 4}));
  EXPECT_EQ(bind.status().error().message, "memory has no tensor 'v.none.weight'.");
}

}  // namespace
}  // namespace bezel

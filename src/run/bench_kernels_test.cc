#ifndef __wasm__
#include "run/bench_kernels.h"

#include "gpu_fixture.h"

namespace bezel {
namespace {

TEST(GpuKernelBench, EveryVariantIsTimed) {
  std::vector<KernelRate> rates;
  const Status status = run_now(bench_kernels(
      *test_device(), {{DType::kQ4_K, 64, 256, 1}, {DType::kQ4_K, 64, 256, 8}}, [&](const KernelRate& rate) {
        rates.push_back(rate);
        return true;
      }));
  if (!test_device()->info().timestamps) {
    EXPECT_FALSE(status);
    return;
  }
  ASSERT_OK(status);
  EXPECT_GE(rates.size(), 4u);
  EXPECT_EQ(rates.front().variant, "default");
  EXPECT_EQ(rates.back().shape.tokens, 8u);
  for (const KernelRate& rate : rates) {
    EXPECT_GT(rate.milliseconds, 0) << rate.variant;
    EXPECT_GT(rate.operations_per_second, 0) << rate.variant;
  }
}

TEST(GpuKernelBench, StopWhenTold) {
  if (!test_device()->info().timestamps) return;
  u32 reports = 0;
  const Status status = run_now(bench_kernels(
      *test_device(), {{DType::kF32, 8, 32, 1}, {DType::kF32, 8, 32, 1}}, [&](const KernelRate&) {
        ++reports;
        return false;
      }));
  ASSERT_OK(status);
  EXPECT_EQ(reports, 1u);
}

}  // namespace
}  // namespace bezel
#endif

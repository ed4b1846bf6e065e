#include "io/source.h"

#include <gtest/gtest.h>

namespace bezel {
namespace {

std::vector<std::byte> ramp(std::size_t n) {
  std::vector<std::byte> bytes(n);
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i * 7);
  return bytes;
}

TEST(MemorySource, ReadsRangesAndRefusesTheRest) {
  auto source = memory_source(ramp(10));
  std::vector<std::byte> out(4);
  ASSERT_TRUE(run_now(source->read(6, out)));
  EXPECT_EQ(out[3], static_cast<std::byte>(63));
  const Status past = run_now(source->read(7, out));
  ASSERT_FALSE(past);
  EXPECT_EQ(past.error().message, "Reading 4 bytes at offset 7 of memory goes past its end (10 bytes).");
  EXPECT_FALSE(run_now(source->read(~u64{0}, out)));
}

}  // namespace
}  // namespace bezel

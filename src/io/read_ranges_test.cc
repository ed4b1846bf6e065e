#include <gtest/gtest.h>

#include <random>

#include "base/format_text.h"
#include "io/source.h"

namespace bezel {
namespace {

// Remembers what it was asked for.
class SpySource final : public Source {
 public:
  explicit SpySource(std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = byte_at(i);
    inner_ = memory_source(std::move(bytes));
  }
  static std::byte byte_at(u64 i) { return static_cast<std::byte>(i * 31 + (i >> 8)); }

  u64 size() const override { return inner_->size(); }
  const std::string& name() const override { return inner_->name(); }
  Task<Status> read(u64 offset, MutableBytes out) override {
    reads.emplace_back(offset, out.size());
    co_return co_await inner_->read(offset, out);
  }

  std::vector<std::pair<u64, u64>> reads;

 private:
  std::unique_ptr<Source> inner_;
};

using Reads = std::vector<std::pair<u64, u64>>;

// Ranges with memory of their own.
struct Wanted {
  explicit Wanted(const Reads& places) {
    for (const auto& [offset, size] : places) buffers.emplace_back(size);
    for (std::size_t i = 0; i < places.size(); ++i) ranges.push_back({places[i].first, buffers[i]});
  }
  void expect_filled() const {
    for (const ReadRange& range : ranges) {
      for (std::size_t i = 0; i < range.out.size(); ++i) {
        ASSERT_EQ(range.out[i], SpySource::byte_at(range.offset + i)) << range.offset << " + " << i;
      }
    }
  }
  std::vector<std::vector<std::byte>> buffers;
  std::vector<ReadRange> ranges;
};

TEST(ReadRanges, JoinsNeighboursInAnyOrder) {
  SpySource source(1000);
  const Wanted wanted({{500, 10}, {0, 10}, {20, 5}, {515, 5}, {22, 10}, {5, 1}});
  ASSERT_TRUE(run_now(read_ranges(source, wanted.ranges, 10, 1000)));
  wanted.expect_filled();
  EXPECT_EQ(source.reads, (Reads{{0, 32}, {500, 20}}));
}

TEST(ReadRanges, KeepsApartWhatIsFar) {
  SpySource source(1000);
  const Wanted wanted({{0, 10}, {21, 10}});
  ASSERT_TRUE(run_now(read_ranges(source, wanted.ranges, 10, 1000)));
  wanted.expect_filled();
  EXPECT_EQ(source.reads, (Reads{{0, 10}, {21, 10}}));
}

TEST(ReadRanges, NeverReadsMoreThanTheLimitAtOnce) {
  SpySource source(1000);
  const Wanted wanted({{0, 60}, {60, 60}, {200, 250}, {210, 20}});
  ASSERT_TRUE(run_now(read_ranges(source, wanted.ranges, 10, 100)));
  wanted.expect_filled();
  EXPECT_EQ(source.reads, (Reads{{0, 60}, {60, 60}, {200, 100}, {300, 100}, {400, 50}, {210, 20}}));
}

TEST(ReadRanges, RandomRangesComeOutRight) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    SpySource source(2000);
    Reads places;
    for (u32 i = 0; i < random() % 20; ++i) {
      const u64 offset = random() % 2001;
      places.emplace_back(offset, random() % std::min<u64>(300, 2001 - offset));
    }
    const Wanted wanted(places);
    const u64 max_read = 1 + random() % 400;
    ASSERT_TRUE(run_now(read_ranges(source, wanted.ranges, random() % 50, max_read)));
    wanted.expect_filled();
    for (const auto& [offset, size] : source.reads) ASSERT_LE(size, max_read);
  }
}

TEST(ReadRanges, RefusesRangesPastTheEndBeforeReading) {
  SpySource source(100);
  std::byte one{};
  for (const u64 offset : {u64{100}, ~u64{0}}) {
    const std::vector<ReadRange> ranges = {{0, {&one, 1}}, {offset, {&one, 1}}};
    const Status status = run_now(read_ranges(source, ranges));
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message,
              format_text("Reading 1 bytes at offset {} of memory goes past its end (100 bytes).", offset));
  }
  EXPECT_TRUE(source.reads.empty());
  const std::vector<ReadRange> nothing = {{100, {}}};
  EXPECT_TRUE(run_now(read_ranges(source, nothing)));
}

}  // namespace
}  // namespace bezel

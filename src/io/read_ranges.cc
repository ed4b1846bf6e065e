#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "io/source.h"

namespace bezel {
namespace {

u64 end_of(const ReadRange& range) { return range.offset + range.out.size(); }

// Straight into its place, however long.
Task<Status> read_alone(Source& source, ReadRange range, u64 max_read) {
  while (!range.out.empty()) {
    const auto step = static_cast<std::size_t>(std::min<u64>(range.out.size(), max_read));
    CO_TRY(co_await source.read(range.offset, range.out.first(step)));
    range.offset += step;
    range.out = range.out.subspan(step);
  }
  co_return Status{};
}

}  // namespace

Task<Status> read_ranges(Source& source, std::span<const ReadRange> ranges, u64 max_gap, u64 max_read) {
  CHECK(max_read > 0);
  std::vector<ReadRange> sorted;
  sorted.reserve(ranges.size());
  for (const ReadRange& range : ranges) {
    // All of them before the first read: sums below cannot overflow, and nothing is fetched in vain.
    if (range.offset > source.size() || range.out.size() > source.size() - range.offset) {
      co_return past_the_end(source, range.offset, range.out.size());
    }
    if (!range.out.empty()) sorted.push_back(range);
  }
  std::ranges::sort(sorted, {}, &ReadRange::offset);

  std::vector<std::byte> buffer;
  for (std::size_t first = 0, last = 0; first < sorted.size(); first = last) {
    const u64 start = sorted[first].offset;
    u64 end = end_of(sorted[first]);
    for (last = first + 1; last < sorted.size(); ++last) {
      const u64 joined = std::max(end, end_of(sorted[last]));
      const bool near = sorted[last].offset <= end || sorted[last].offset - end <= max_gap;
      if (!near || joined - start > max_read) break;
      end = joined;
    }
    if (last == first + 1) {
      CO_TRY(co_await read_alone(source, sorted[first], max_read));
      continue;
    }
    buffer.resize(static_cast<std::size_t>(end - start));
    CO_TRY(co_await source.read(start, buffer));
    for (std::size_t i = first; i < last; ++i) {
      const MutableBytes out = sorted[i].out;
      std::memcpy(out.data(), buffer.data() + (sorted[i].offset - start), out.size());
    }
  }
  co_return Status{};
}

}  // namespace bezel

#include "run/prompt.h"

#include <algorithm>

#include "base/check.h"

namespace bezel {

void Prompt::append(const Prompt& more) {
  for (const SoftRun& run : more.soft) soft.push_back({size() + run.first, run.tokens});
  ids.insert(ids.end(), more.ids.begin(), more.ids.end());
}

void Prompt::truncate(u32 count) {
  while (!soft.empty() && soft.back().end() > count) {
    count = std::min(count, soft.back().first);
    soft.pop_back();
  }
  ids.resize(std::min<std::size_t>(count, ids.size()));
}

Prompt rest_of(const Prompt& prompt, u32 count) {
  Prompt rest{{prompt.ids.begin() + count, prompt.ids.end()}};
  for (const SoftRun& run : prompt.soft) {
    if (run.end() <= count) continue;
    CHECK(run.first >= count);
    rest.soft.push_back({run.first - count, run.tokens});
  }
  return rest;
}

u32 common_prefix(const Prompt& a, const Prompt& b) {
  u32 common = static_cast<u32>(std::ranges::mismatch(a.ids, b.ids).in1 - a.ids.begin());
  const auto same = [](const SoftRun& x, const SoftRun& y) {
    return x.first == y.first && x.tokens->count == y.tokens->count && x.tokens->key == y.tokens->key;
  };
  const auto [mine, theirs] = std::ranges::mismatch(a.soft, b.soft, same);
  if (mine != a.soft.end()) common = std::min(common, mine->first);
  if (theirs != b.soft.end()) common = std::min(common, theirs->first);
  // The runs before are the same, but the ids may part within the last of them.
  for (auto run = a.soft.begin(); run != mine; ++run) {
    if (common < run->end()) return std::min(common, run->first);
  }
  return common;
}

}  // namespace bezel

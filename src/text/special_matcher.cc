#include "text/special_matcher.h"

#include <algorithm>

namespace bezel {

void SpecialMatcher::add(std::string_view text, u32 id) {
  if (!text.empty() && text.size() <= kMaxLength) entries_.push_back({std::string(text), id});
}

void SpecialMatcher::prepare() {
  const auto same_text = [](const Entry& a, const Entry& b) { return a.text == b.text; };
  std::ranges::stable_sort(entries_, {}, &Entry::text);
  entries_.erase(std::ranges::unique(entries_, same_text).begin(), entries_.end());
  for (u32 i = 0; i < entries_.size(); ++i) {
    auto& [begin, end] = by_first_byte_[static_cast<u8>(entries_[i].text[0])];
    if (end == 0) begin = i;
    end = i + 1;
  }
}

SpecialMatcher::Match SpecialMatcher::find(std::string_view text, size_t from) const {
  for (size_t at = from; at < text.size(); ++at) {
    const Match match = match_at(text, at);
    if (match.id != kNoToken) return match;
  }
  return {};
}

SpecialMatcher::Match SpecialMatcher::match_at(std::string_view text, size_t at) const {
  auto [begin, end] = by_first_byte_[static_cast<u8>(text[at])];
  Match best;
  // Invariant: the entries in [begin, end) are those that begin with the `length` bytes of text at `at`.
  for (size_t length = 1; begin < end; ++length) {
    if (entries_[begin].text.size() == length) {
      best = {at, length, entries_[begin].id};
      ++begin;
    }
    if (at + length == text.size()) break;
    // Signed or not, the sort compared bytes as unsigned; so must the search.
    const auto byte_of = [length](const Entry& entry) { return static_cast<u8>(entry.text[length]); };
    const auto range = std::ranges::equal_range(entries_.begin() + begin, entries_.begin() + end,
                                                static_cast<u8>(text[at + length]), {}, byte_of);
    begin = static_cast<u32>(range.begin() - entries_.begin());
    end = static_cast<u32>(range.end() - entries_.begin());
  }
  return best;
}

}  // namespace bezel

// Finds special tokens in text.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/types.h"
#include "text/piece_table.h"

namespace bezel {

class SpecialMatcher {
 public:
  // Longer texts are not matched. This bounds the work at each position, whatever the file calls special; the
  // longest real one has 17 bytes.
  static constexpr size_t kMaxLength = 64;

  // Empty and too long texts are left out.
  void add(std::string_view text, u32 id);
  // Once, after the last add().
  void prepare();

  struct Match {
    size_t at = 0;
    size_t length = 0;
    u32 id = kNoToken;
  };
  // The leftmost match at or after `from`, the longest of those that begin there; id = kNoToken if there is
  // none.
  Match find(std::string_view text, size_t from) const;

 private:
  struct Entry {
    std::string text;
    u32 id;
  };
  Match match_at(std::string_view text, size_t at) const;

  std::vector<Entry> entries_;  // sorted: a common prefix is a range
  // The range of the entries that begin with each byte.
  std::array<std::pair<u32, u32>, 256> by_first_byte_{};
};

}  // namespace bezel

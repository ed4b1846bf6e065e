// The texts of a vocabulary and the way back from text to id.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace bezel {

// No token has this id.
inline constexpr u32 kNoToken = ~u32{0};

// Owns its text, all of it in one allocation.
class PieceTable {
 public:
  PieceTable() = default;
  static Result<PieceTable> build(std::span<const std::string_view> pieces);

  u32 size() const { return static_cast<u32>(starts_.size()) - 1; }
  std::string_view operator[](u32 id) const {
    return std::string_view(text_).substr(starts_[id], starts_[id + 1] - starts_[id]);
  }
  // The lowest id with this text, or kNoToken.
  u32 find(std::string_view piece) const;

 private:
  // An open-addressing slot. The hash spares most comparisons, each of which would be two cache misses.
  struct Slot {
    u32 hash = 0;
    u32 id = kNoToken;
  };
  // The slot that holds `piece`, or the empty one where it belongs.
  u32 locate(std::string_view piece, u32 hash) const;

  std::string text_;
  std::vector<u32> starts_{0};  // and the end of the last
  std::vector<Slot> slots_{1};  // a power of two, at most half full
};

}  // namespace bezel

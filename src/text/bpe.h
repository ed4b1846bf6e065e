// Byte-pair encoding on symbols that are already numbers.
#pragma once
#include <vector>

#include "base/types.h"
#include "text/piece_table.h"

namespace bezel {

// (left id, right id) -> rank and the id of the two joined.
class MergeTable {
 public:
  struct Merge {
    u32 rank = kNoToken;
    u32 merged = kNoToken;
  };

  MergeTable() = default;
  explicit MergeTable(size_t merges);  // room for that many

  // If a pair comes twice the first stays: ranks are given in ascending order.
  void add(u32 left, u32 right, Merge merge);
  // kNoToken in both fields when the pair does not merge.
  Merge find(u32 left, u32 right) const;

 private:
  struct Slot {
    u64 pair = ~u64{0};
    Merge merge;
  };
  size_t locate(u64 pair) const;

  std::vector<Slot> slots_{2};  // a power of two, at most half full
  u32 shift_ = 63;              // 64 - log2 of their number
};

// Merges one run of symbols: always the pair of the lowest rank, the leftmost of equals, until none is left.
// O(n log n). One object serves many runs and keeps its memory between them.
class Bpe {
 public:
  // Symbols from here on belong to the caller and never merge; vocabulary ids are below.
  static constexpr u32 kForeign = u32{1} << 31;

  explicit Bpe(const MergeTable& merges) : merges_(&merges) {}

  void push(u32 symbol) { nodes_.push_back({.symbol = symbol}); }
  u32 pending() const { return static_cast<u32>(nodes_.size()); }
  // Merges what was pushed and appends what is left of it; the next push begins a new run.
  void finish(std::vector<u32>& out);

 private:
  static constexpr u32 kEnd = ~u32{0};

  // A symbol in a doubly linked list, with the merge that it and its right neighbour would make.
  struct Node {
    u32 symbol = 0;
    u32 previous = kEnd;
    u32 next = kEnd;
    MergeTable::Merge merge = {};
  };
  // A rank (high half) and the node that begins the pair. It is out of date, and skipped, when that node has
  // another rank by now; so nothing is ever removed from the middle of the heap.
  using Candidate = u64;

  void look_up(u32 node);
  void propose(u32 node);  // looks up and adds to the heap

  const MergeTable* merges_;
  std::vector<Node> nodes_;
  std::vector<Candidate> heap_;
};

}  // namespace bezel

#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace bezel {

MergeTable::MergeTable(size_t merges)
    : slots_(std::bit_ceil(merges * 2 + 2)), shift_(64 - static_cast<u32>(std::countr_zero(slots_.size()))) {}

size_t MergeTable::locate(u64 pair) const {
  const size_t mask = slots_.size() - 1;
  // The product's high bits depend on every bit of the pair.
  size_t at = static_cast<size_t>((pair * 0x9E3779B97F4A7C15) >> shift_);
  while (slots_[at].pair != pair && slots_[at].merge.rank != kNoToken) at = (at + 1) & mask;
  return at;
}

void MergeTable::add(u32 left, u32 right, Merge merge) {
  const u64 pair = (u64{left} << 32) | right;
  Slot& slot = slots_[locate(pair)];
  if (slot.merge.rank == kNoToken) slot = {pair, merge};
}

MergeTable::Merge MergeTable::find(u32 left, u32 right) const {
  return slots_[locate((u64{left} << 32) | right)].merge;
}

void Bpe::look_up(u32 node) {
  Node& left = nodes_[node];
  left.merge = {};
  if (left.next == kEnd) return;
  const u32 right = nodes_[left.next].symbol;
  if (left.symbol < kForeign && right < kForeign) left.merge = merges_->find(left.symbol, right);
}

void Bpe::propose(u32 node) {
  look_up(node);
  const u32 rank = nodes_[node].merge.rank;
  if (rank == kNoToken) return;
  heap_.push_back((u64{rank} << 32) | node);
  std::ranges::push_heap(heap_, std::greater{});
}

void Bpe::finish(std::vector<u32>& out) {
  if (nodes_.empty()) return;
  const u32 count = pending();
  for (u32 i = 0; i < count; ++i) {
    nodes_[i].previous = i == 0 ? kEnd : i - 1;
    nodes_[i].next = i + 1 == count ? kEnd : i + 1;
    look_up(i);
    const u32 rank = nodes_[i].merge.rank;
    if (rank != kNoToken) heap_.push_back((u64{rank} << 32) | i);
  }
  std::ranges::make_heap(heap_, std::greater{});

  while (!heap_.empty()) {
    const Candidate best = heap_.front();
    std::ranges::pop_heap(heap_, std::greater{});
    heap_.pop_back();
    const u32 at = static_cast<u32>(best);
    Node& left = nodes_[at];
    if (left.merge.rank != best >> 32) continue;
    Node& right = nodes_[left.next];
    left.symbol = left.merge.merged;
    left.next = right.next;
    right.merge = {};
    if (left.next != kEnd) nodes_[left.next].previous = at;
    propose(at);
    if (left.previous != kEnd) propose(left.previous);
  }

  // A merge keeps its left node, so the first node is never lost.
  for (u32 at = 0; at != kEnd; at = nodes_[at].next) out.push_back(nodes_[at].symbol);
  nodes_.clear();
}

}  // namespace bezel

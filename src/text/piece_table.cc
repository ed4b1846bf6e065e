#include "text/piece_table.h"

#include <bit>
#include <functional>

namespace bezel {
namespace {

// Ids share 32 bits with other values (bpe.h); no vocabulary comes near this.
constexpr u64 kMaxPieces = u64{1} << 28;

u32 hash_of(std::string_view text) {
  const u64 hash = std::hash<std::string_view>{}(text);
  return static_cast<u32>(hash ^ (hash >> 32));
}

}  // namespace

Result<PieceTable> PieceTable::build(std::span<const std::string_view> pieces) {
  if (pieces.size() > kMaxPieces) {
    return invalid("The vocabulary has {} tokens; at most {} are possible.", pieces.size(), kMaxPieces);
  }
  u64 bytes = 0;
  for (const auto piece : pieces) bytes += piece.size();
  if (bytes >= kNoToken) return invalid("The vocabulary's text has {} bytes; 4 GiB is the limit.", bytes);

  PieceTable table;
  table.text_.reserve(static_cast<size_t>(bytes));
  table.starts_.reserve(pieces.size() + 1);
  table.slots_.assign(std::bit_ceil(pieces.size() * 2 + 1), {});
  for (const auto piece : pieces) {
    const u32 id = table.size();
    table.text_.append(piece);
    table.starts_.push_back(static_cast<u32>(table.text_.size()));
    const u32 hash = hash_of(piece);
    Slot& slot = table.slots_[table.locate(piece, hash)];
    if (slot.id == kNoToken) slot = {hash, id};
  }
  return table;
}

u32 PieceTable::find(std::string_view piece) const { return slots_[locate(piece, hash_of(piece))].id; }

u32 PieceTable::locate(std::string_view piece, u32 hash) const {
  const u32 mask = static_cast<u32>(slots_.size() - 1);
  for (u32 at = hash & mask;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.id == kNoToken || (slot.hash == hash && (*this)[slot.id] == piece)) return at;
  }
}

}  // namespace bezel

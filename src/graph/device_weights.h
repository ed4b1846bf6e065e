// A model's weights on a GPU, as kernels see them.
#pragma once
#include <memory>
#include <vector>

#include "base/result.h"
#include "gguf/dtype.h"
#include "gpu/device.h"
#include "graph/graph.h"

namespace bezel {

struct DeviceWeight {
  // Rows (or, of a stack of matrices, whole matrices) [first, first + count), because one binding may be
  // smaller than the tensor: a buffer of their own, or a part of one.
  struct Tile {
    Tile(Buffer own, u32 first, u32 count)
        : buffer(std::make_shared<const Buffer>(std::move(own))),
          bytes(buffer->bytes()),
          first(first),
          count(count) {}
    Tile(std::shared_ptr<const Buffer> shared, u64 offset, u64 bytes, u32 count)
        : buffer(std::move(shared)), offset(offset), bytes(bytes), count(count) {}
    BufferView view() const { return buffer->view(offset, bytes); }

    std::shared_ptr<const Buffer> buffer;
    u64 offset = 0, bytes = 0;
    u32 first = 0, count = 0;
  };
  DType type = DType::kF32;
  bool wide = false;  // its rows are those of widen_row(), see wide_form.h
  u32 row_bytes = 0;
  std::vector<Tile> tiles;
  f32 scalar = 1;  // the value, where there is only one
};

// A weight without its tiles, as products read it: in its own type where there are kernels for that, in the
// wide form where it has one and does not grow by more than an eighth. What nobody publishes becomes F16,
// vectors become F32, and so do float matrices whose rows are not whole runs of 16.
DeviceWeight product_weight(DType type, u64 cols, u64 rows);
// As it is in the file, but for types that are only read in the wide form, which become F16: for tables, of
// which single rows are read.
DeviceWeight table_weight(DType type, u64 cols, u64 rows);

// WGSL that reads it.
std::string format_source(const DeviceWeight& weight);

struct DeviceWeights {
  std::vector<DeviceWeight> tensors;  // by Weight::index
  Buffer ones;                        // stands in for a missing norm weight or scale
};

// Whether rows of both are read in the same way.
bool same_form(const DeviceWeight& a, const DeviceWeight& b);

struct Unplaced {
  DeviceWeight* weight;  // without tiles
  u32 rows;
};
// Neighbours of one form get one buffer of at most so many bytes, in which they lie one after the other: then
// a product of one vector with all of them reads one binding. Only where each can still be bound alone; who
// has no such neighbour stays without tiles.
Status place_together(Device& device, std::span<const Unplaced> weights, u64 most);

// All of them get one buffer, if it has at most so many bytes; else none does.
Status place_in_one(Device& device, std::span<const Unplaced> weights, u64 most);

// Cuts [0, count) into pieces of at most `most` items.
std::vector<std::pair<u32, u32>> cut(u32 count, u32 most);

}  // namespace bezel

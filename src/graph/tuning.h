// What is fastest on a device, as it was measured there: variants of kernels (run/tune.h), which Plan asks
// for before it looks into its own table, and relays, which are tried when a model is loaded.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/plan.h"

namespace bezel {

struct KernelVariant {
  std::string name;  // what a saved tuning knows it by
  VectorOptions vector = {};
  TileOptions tiles = {};
};

// How products with a vector can be computed on a device, likely ones first. Every one fits every product.
std::vector<KernelVariant> vector_variants(const DeviceInfo& info);
// And products with many tokens. Those with matrices are for quantised weights only: for others the table's
// choice stands.
std::vector<KernelVariant> tile_variants(const DeviceInfo& info);

// Models whose relays take the same time: fine-tunes of one model in one form. With other types or other
// sizes of anything the bytes are others.
struct RelayShape {
  u32 layers = 0, width = 0;
  u64 bytes = 0;  // of all weights
  auto operator<=>(const RelayShape&) const = default;
};
// Threads of a workgroup that relays are tried with, likely ones first.
std::vector<u32> relay_threads(const DeviceInfo& info);

class Tuning {
 public:
  // Null where the table's choice stands.
  const KernelVariant* find(const ProductShape& shape) const;
  void set(const ProductShape& shape, KernelVariant variant);
  void forget(const ProductShape& shape) { products_.erase(shape); }
  const std::map<ProductShape, KernelVariant>& products() const { return products_; }

  // With how many threads relays were faster, 0: without them; nothing where that was not tried.
  std::optional<u32> relays(const RelayShape& shape) const;
  void set_relays(const RelayShape& shape, u32 threads) { relays_[shape] = threads; }

  // Takes over what is news; where both know something, that.
  void add(const Tuning& news);

  // As JSON, under a key that names adapter, driver and kernels.
  std::string text(const DeviceInfo& info) const;
  // From anything: what was saved under another key, and what is no variant of this device, is not there.
  static Tuning parse(std::string_view text, const DeviceInfo& info);

 private:
  std::map<ProductShape, KernelVariant> products_;
  std::map<RelayShape, u32> relays_;
};

std::string_view product_name(ProductKind kind);

}  // namespace bezel

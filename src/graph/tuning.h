// Which variants of kernels are fastest on a device, as run/tune.h measured them there. Plan asks before it
// looks into its own table.
#pragma once
#include <map>
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

class Tuning {
 public:
  // Null where the table's choice stands.
  const KernelVariant* find(const ProductShape& shape) const;
  void set(const ProductShape& shape, KernelVariant variant);
  void forget(const ProductShape& shape) { products_.erase(shape); }
  const std::map<ProductShape, KernelVariant>& products() const { return products_; }

  // As JSON, under a key that names adapter, driver and kernels.
  std::string text(const DeviceInfo& info) const;
  // From anything: what was saved under another key, and what is no variant of this device, is not there.
  static Tuning parse(std::string_view text, const DeviceInfo& info);

 private:
  std::map<ProductShape, KernelVariant> products_;
};

std::string_view product_name(ProductKind kind);

}  // namespace bezel

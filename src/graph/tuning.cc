#include "graph/tuning.h"

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/format_text.h"
#include "kernels/digest.h"

namespace bezel {
namespace {

using nlohmann::json;

constexpr std::array kKinds = {ProductKind::kOne, ProductKind::kSeveral, ProductKind::kGated,
                               ProductKind::kTiles};

std::string name_of(const VectorOptions& o) {
  if (o.held.value_or(false)) return format_text("held, {} threads", o.threads);
  return format_text("{}{}{} threads, {} lanes, {} rows{}", o.units.value_or(true) ? "" : "direct, ",
                     o.digits.value_or(false) ? "integers, " : "", o.threads, o.lanes, o.rows,
                     o.subgroups ? ", subgroups" : "");
}

std::string name_of(const TileOptions& tiles) {
  const bool matrices = tiles.kind == TileOptions::Kind::kMatrix;
  return format_text("{}{} x {}, step {}", matrices ? "matrices, " : "", tiles.rows, tiles.tokens,
                     tiles.step);
}

std::string relays_name(u32 threads) {
  return threads == 0 ? std::string("off") : format_text("{} threads", threads);
}

std::string key_of(const DeviceInfo& info) {
  return format_text("{} | {} | {} | {} | kernels {}", info.name, info.vendor, info.backend, info.driver,
                     wgsl::kDigest);
}

const json* member(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

std::string_view text_of(const json& object, const char* name) {
  const json* found = member(object, name);
  const auto* text = found == nullptr ? nullptr : found->get_ptr<const std::string*>();
  return text == nullptr ? std::string_view() : *text;
}

// 0 where there is none, or it is too large.
template <class T = u32>
T number_of(const json& object, const char* name) {
  const json* found = member(object, name);
  if (found == nullptr || !found->is_number_unsigned()) return 0;
  const u64 value = found->get<u64>();
  return value <= std::numeric_limits<T>::max() ? static_cast<T>(value) : 0;
}

// The objects of a list, or none.
std::vector<const json*> objects_of(const json& saved, const char* name) {
  std::vector<const json*> out;
  const json* list = member(saved, name);
  if (list == nullptr || !list->is_array()) return out;
  for (const json& entry : *list)
    if (entry.is_object()) out.push_back(&entry);
  return out;
}

}  // namespace

std::string_view product_name(ProductKind kind) {
  switch (kind) {
    case ProductKind::kOne:
      return "mat_vec";
    case ProductKind::kSeveral:
      return "mat_vecs";
    case ProductKind::kGated:
      return "gated_mat_vec";
    case ProductKind::kTiles:
      return "mat_mul";
  }
}

std::vector<KernelVariant> vector_variants(const DeviceInfo& info) {
  std::vector<KernelVariant> out;
  const auto add = [&](const VectorOptions& options) {
    if (options.threads <= info.max_invocations) out.push_back({name_of(options), options, {}});
  };
  if (info.software) {
    for (const auto& [threads, lanes, rows] : {std::tuple{16u, 16u, 2u}, {16u, 8u, 4u}, {32u, 32u, 4u}})
      add({.units = false, .threads = threads, .lanes = lanes, .rows = rows, .held = false});
    return out;
  }
  for (const u32 threads : {512u, 256u, 128u}) {
    if (info.integer_dots) add({.threads = threads, .held = true});
  }
  for (const auto& [digits, subgroups] : {std::pair{true, false}, {false, false}, {false, true}}) {
    if ((subgroups && !info.subgroups) || (digits && !info.integer_dots)) continue;
    // First what the table has for some shape.
    for (const auto& [threads, lanes, rows] : {std::tuple{256u, 32u, 1u},
                                               {128u, 16u, 2u},
                                               {256u, 8u, 2u},
                                               {256u, 8u, 1u},
                                               {128u, 8u, 2u},
                                               {128u, 32u, 1u},
                                               {256u, 16u, 1u},
                                               {128u, 16u, 1u},
                                               {64u, 8u, 2u},
                                               {128u, 8u, 1u},
                                               {64u, 8u, 1u},
                                               {128u, 32u, 2u},
                                               {256u, 32u, 2u},
                                               {128u, 8u, 4u},
                                               {128u, 16u, 4u},
                                               {64u, 8u, 4u},
                                               {128u, 4u, 2u},
                                               {128u, 4u, 4u}})
      add({true, threads, lanes, rows, subgroups, digits, false});
  }
  return out;
}

std::vector<KernelVariant> tile_variants(const DeviceInfo& info) {
  using Kind = TileOptions::Kind;
  std::vector<TileOptions> wanted{{Kind::kF32, 32, 32, 16}, {Kind::kF32, 64, 64, 32}};
  if (!info.software) {
    wanted = {
        {Kind::kMatrix, 128, 128, 32, 3}, {Kind::kMatrix, 128, 256, 16, 3}, {Kind::kMatrix, 64, 128, 32, 3},
        {Kind::kMatrix, 128, 64, 32, 3},  {Kind::kMatrix, 64, 64, 32, 3},   {Kind::kF32, 128, 128, 16},
        {Kind::kF32, 128, 64, 16},        {Kind::kF32, 64, 64, 32},         {Kind::kF32, 32, 32, 16},
        {Kind::kF32, 64, 64, 16},         {Kind::kF32, 128, 128, 32}};
  }
  std::vector<KernelVariant> out;
  for (const TileOptions& tiles : wanted) {
    if (tiles_fit(info, tiles)) out.push_back({name_of(tiles), {}, tiles});
  }
  return out;
}

std::vector<u32> relay_threads(const DeviceInfo& info) {
  if (info.software) return {64};  // it makes a fiber of every few: there, fewer are much faster
  // Many share what they bring of a vector; of fewer, two workgroups may take turns.
  std::vector<u32> out;
  for (const u32 threads : {512u, 256u})
    if (threads <= info.max_invocations) out.push_back(threads);
  return out;
}

const KernelVariant* Tuning::find(const ProductShape& shape) const {
  const auto found = products_.find(shape);
  return found == products_.end() ? nullptr : &found->second;
}

void Tuning::set(const ProductShape& shape, KernelVariant variant) {
  products_.insert_or_assign(shape, std::move(variant));
}

std::optional<u32> Tuning::relays(const RelayShape& shape) const {
  const auto found = relays_.find(shape);
  return found == relays_.end() ? std::nullopt : std::optional(found->second);
}

void Tuning::add(const Tuning& news) {
  for (const auto& [shape, variant] : news.products_) set(shape, variant);
  for (const auto& [shape, threads] : news.relays_) set_relays(shape, threads);
}

std::string Tuning::text(const DeviceInfo& info) const {
  json products = json::array();
  for (const auto& [shape, variant] : products_) {
    products.push_back({{"kernel", product_name(shape.kind)},
                        {"type", dtype_name(shape.type)},
                        {"rows", shape.rows},
                        {"cols", shape.cols},
                        {"tokens", shape.tokens},
                        {"variant", variant.name}});
  }
  json relays = json::array();
  for (const auto& [shape, threads] : relays_) {
    relays.push_back({{"layers", shape.layers},
                      {"width", shape.width},
                      {"bytes", shape.bytes},
                      {"variant", relays_name(threads)}});
  }
  const json all{{"key", key_of(info)}, {"products", std::move(products)}, {"relays", std::move(relays)}};
  return all.dump(1, ' ', false, json::error_handler_t::replace);
}

Tuning Tuning::parse(std::string_view text, const DeviceInfo& info) {
  Tuning out;
  constexpr std::size_t kMost = 1 << 20;  // bytes: a model has a dozen shapes
  if (text.size() > kMost) return out;
  const json saved = json::parse(text.begin(), text.end(), nullptr, false);
  // The key goes the same way as it did when it was saved, whatever bytes a driver's name has.
  const json key = json::parse(json(key_of(info)).dump(-1, ' ', false, json::error_handler_t::replace));
  if (!saved.is_object() || member(saved, "key") == nullptr || *member(saved, "key") != key) return out;
  const auto with_vector = vector_variants(info), with_tiles = tile_variants(info);
  for (const json* entry : objects_of(saved, "products")) {
    const json& product = *entry;
    const auto kind = std::ranges::find(kKinds, text_of(product, "kernel"), product_name);
    const DTypeInfo* type = find_dtype(text_of(product, "type"));
    const u32 rows = number_of(product, "rows"), cols = number_of(product, "cols");
    const u32 tokens = number_of(product, "tokens");
    if (kind == kKinds.end() || type == nullptr || rows == 0 || cols == 0) continue;
    const bool tiles = *kind == ProductKind::kTiles;
    const auto& variants = tiles ? with_tiles : with_vector;
    const auto variant = std::ranges::find(variants, text_of(product, "variant"), &KernelVariant::name);
    if (variant == variants.end() || tiles != (tokens > 0)) continue;
    out.set({*kind, type->type, rows, cols, tokens}, *variant);
  }
  auto known_threads = relay_threads(info);
  known_threads.push_back(0);
  for (const json* entry : objects_of(saved, "relays")) {
    const RelayShape shape{number_of(*entry, "layers"), number_of(*entry, "width"),
                           number_of<u64>(*entry, "bytes")};
    const auto threads = std::ranges::find(known_threads, text_of(*entry, "variant"), relays_name);
    if (shape.layers == 0 || shape.width == 0 || shape.bytes == 0 || threads == known_threads.end()) continue;
    out.set_relays(shape, *threads);
  }
  return out;
}

}  // namespace bezel

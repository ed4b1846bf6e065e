// Products of matrices, and of experts, with a few vectors.
#include <algorithm>
#include <array>
#include <numeric>

#include "base/check.h"
#include "base/format_text.h"
#include "graph/lowering.h"
#include "graph/tuning.h"
#include "graph/wide_form.h"
#include "kernels/expert_mat_vec.wgsl.h"
#include "kernels/gated_mat_vec.wgsl.h"
#include "kernels/lib_arena_fours.wgsl.h"
#include "kernels/lib_arena_ones.wgsl.h"
#include "kernels/lib_bounds.wgsl.h"
#include "kernels/lib_bytes.wgsl.h"
#include "kernels/lib_choose.wgsl.h"
#include "kernels/lib_chosen.wgsl.h"
#include "kernels/lib_chunk_digits.wgsl.h"
#include "kernels/lib_chunk_floats.wgsl.h"
#include "kernels/lib_digits.wgsl.h"
#include "kernels/lib_digits_apart.wgsl.h"
#include "kernels/lib_digits_blocks.wgsl.h"
#include "kernels/lib_digits_levels.wgsl.h"
#include "kernels/lib_digits_q2_k.wgsl.h"
#include "kernels/lib_digits_q8_0.wgsl.h"
#include "kernels/lib_digits_scales.wgsl.h"
#include "kernels/lib_gelu.wgsl.h"
#include "kernels/lib_no_bounds.wgsl.h"
#include "kernels/lib_numbers.wgsl.h"
#include "kernels/lib_product.wgsl.h"
#include "kernels/lib_product_direct.wgsl.h"
#include "kernels/lib_product_held.wgsl.h"
#include "kernels/lib_reduce.wgsl.h"
#include "kernels/lib_reduce_rows.wgsl.h"
#include "kernels/lib_reduce_rows_subgroups.wgsl.h"
#include "kernels/lib_reduce_subgroups.wgsl.h"
#include "kernels/lib_small.wgsl.h"
#include "kernels/lib_totals.wgsl.h"
#include "kernels/lib_unit_any.wgsl.h"
#include "kernels/lib_unit_apart.wgsl.h"
#include "kernels/lib_unit_blocks.wgsl.h"
#include "kernels/lib_unit_levels.wgsl.h"
#include "kernels/lib_unit_q2_k.wgsl.h"
#include "kernels/lib_unit_q4_k.wgsl.h"
#include "kernels/lib_unit_q5_k.wgsl.h"
#include "kernels/lib_unit_q8_0.wgsl.h"
#include "kernels/lib_unit_scales.wgsl.h"
#include "kernels/lib_vector.wgsl.h"
#include "kernels/lib_vector_norms.wgsl.h"
#include "kernels/lib_words_blocks.wgsl.h"
#include "kernels/lib_words_levels.wgsl.h"
#include "kernels/lib_words_q2_k.wgsl.h"
#include "kernels/lib_words_q3_k.wgsl.h"
#include "kernels/lib_words_q4_k.wgsl.h"
#include "kernels/lib_words_q5_k.wgsl.h"
#include "kernels/lib_words_q6_k.wgsl.h"
#include "kernels/lib_words_q8_0.wgsl.h"
#include "kernels/lib_words_wide.wgsl.h"
#include "kernels/mat_vec.wgsl.h"
#include "kernels/mat_vecs.wgsl.h"

namespace bezel {
namespace {

// Types whose units of 64 have libraries: that read them, and multiply them as floats and by integers.
struct UnitLibraries {
  DType type;
  std::string_view words, floats, more_floats, digits;
  bool halves = false;  // 32 neighbours have one scale
};
constexpr UnitLibraries blocks_of(DType type) {
  return {type, wgsl::lib_words_blocks::source,  wgsl::lib_unit_blocks::source,
          {},   wgsl::lib_digits_blocks::source, true};
}
constexpr UnitLibraries levels_of(DType type) {
  return {type,
          wgsl::lib_words_levels::source,
          wgsl::lib_unit_levels::source,
          {},
          wgsl::lib_digits_levels::source};
}
constexpr UnitLibraries kUnits[] = {
    {DType::kQ4_K, wgsl::lib_words_q4_k::source, wgsl::lib_unit_scales::source, wgsl::lib_unit_q4_k::source,
     wgsl::lib_digits_scales::source, true},
    {DType::kQ5_K, wgsl::lib_words_q5_k::source, wgsl::lib_unit_scales::source, wgsl::lib_unit_q5_k::source,
     wgsl::lib_digits_scales::source, true},
    {DType::kQ6_K,
     wgsl::lib_words_q6_k::source,
     wgsl::lib_unit_apart::source,
     {},
     wgsl::lib_digits_apart::source},
    {DType::kQ8_0,
     wgsl::lib_words_q8_0::source,
     wgsl::lib_unit_q8_0::source,
     {},
     wgsl::lib_digits_q8_0::source,
     true},
    {DType::kQ2_K,
     wgsl::lib_words_q2_k::source,
     wgsl::lib_unit_q2_k::source,
     {},
     wgsl::lib_digits_q2_k::source},
    {DType::kQ3_K,
     wgsl::lib_words_q3_k::source,
     wgsl::lib_unit_apart::source,
     {},
     wgsl::lib_digits_apart::source},
    blocks_of(DType::kQ4_0),
    blocks_of(DType::kQ4_1),
    blocks_of(DType::kQ5_0),
    blocks_of(DType::kQ5_1),
    blocks_of(DType::kIQ4_NL),
    blocks_of(DType::kMXFP4),
    levels_of(DType::kNVFP4),
    levels_of(DType::kIQ4_XS),
    levels_of(DType::kIQ3_S),
    levels_of(DType::kIQ3_XXS),
    levels_of(DType::kIQ2_S),
    levels_of(DType::kIQ2_XS),
    levels_of(DType::kIQ2_XXS),
    levels_of(DType::kIQ1_M),
    levels_of(DType::kIQ1_S),
};

// Those of this weight, if it lies as they want it.
const UnitLibraries* units_of(const DeviceWeight& w) {
  const auto* found = std::ranges::find(kUnits, w.type, &UnitLibraries::type);
  return found != std::end(kUnits) && reads_wide(w) ? found : nullptr;
}

// What tells a product with a vector how to multiply with a type: units of 64, or of 16.
std::string unit_source(const DeviceWeight& w) {
  if (const UnitLibraries* units = units_of(w))
    return std::string(wgsl::lib_small::source)
        .append(codes_source(w.type, "f16x2"))
        .append(units->words)
        .append(units->floats)
        .append(units->more_floats);
  return std::string(reads_wide(w) ? wgsl::lib_words_wide::source : wgsl::lib_bytes::source)
      .append(format_source(w))
      .append(wgsl::lib_unit_any::source);
}

// Few workgroups, one for each multiprocessor of a large GPU: each brings the vector into its registers, and
// that costs as much as many rows. Of all sizes that was fastest on an H200 (bench/RESULTS.md).
HeldShape held_shape(const ProductShape& product, u32 multiple, u32 threads, u32 memory) {
  constexpr u32 kGroups = 128, kMostTeams = 32, kUnit = 64, kWords = 12, kShares = 8, kRows = 4;
  CHECK(threads >= 2);
  HeldShape shape;
  // What lib_product_held.wgsl declares, and a sum of norms (lib_reduce.wgsl).
  const auto fits = [&](u32 each, u32 batch) {
    return 4 * std::max(kWords, batch / kRows * shape.teams) * shape.lanes + 8 * shape.lanes +
               shape.teams * (each + kShares * batch) + groups(threads, 16) * 16 <=
           memory / sizeof(u32);
  };
  u32 step = 0;  // rows of a thread so that those of a workgroup are such a multiple
  do {
    shape.lanes = groups(groups(groups(product.cols, kUnit), ++shape.passes), 2) * 2;
    shape.teams = std::min(threads / shape.lanes, kMostTeams);
    step = std::lcm(kRows, multiple / std::gcd(multiple, shape.teams));
  } while (shape.teams == 0 || !fits(step, kRows));
  shape.each = groups(product.rows, shape.teams * kGroups * step) * step;
  // A thread writes four results at most.
  while (shape.each > step && (shape.each > 4 * shape.lanes || !fits(shape.each, kRows))) shape.each -= step;
  shape.batch = shape.each;
  for (u32 parts = 2; !fits(shape.each, shape.batch); ++parts)
    shape.batch = groups(shape.each, parts * kRows) * kRows;
  return shape;
}

// What was fastest on an H200 (bench/RESULTS.md). A small matrix needs many threads for each row, so that all
// of the GPU has work; a large one, few, which share what they read of the vector.
VectorOptions vector_table(const ProductShape& product, bool digits) {
  const auto [kind, type, rows, cols, tokens] = product;
  // By integers a thread is done sooner. All small ones alike: they share a kernel, whose instructions then
  // stay.
  if (rows < 6000) return {{}, 256, digits ? 16u : 32u, 1};
  if (cols > 8192) return {{}, 128, 16, 2};
  if (type == DType::kQ6_K) return {{}, 256, 8, cols < 4096 ? 2u : 1u};
  return {{}, rows < 16384 && cols < 4096 ? 128u : 256u, 8, 2};
}

// Subgroups have at least so many threads; NVIDIA's and the software adapter's just so many.
u32 least_subgroup(const DeviceInfo& info) { return info.vendor == "nvidia" ? 32 : 4; }

// Storage bindings of a kernel.
template <class Io>
constexpr std::size_t bindings_of = std::size(Io::kWritten);

}  // namespace

bool has_digits(const DeviceWeight& w) { return units_of(w) != nullptr; }

// NVIDIA's GPUs convert subnormal halves too; elsewhere a GPU may not, and they take ten instructions more.
std::string digits_common(const DeviceInfo& info) {
  return format_text("fn scales_of(word: u32) -> vec2f {{ return {}(word); }}\n",
                     info.vendor == "nvidia" ? "unpack2x16float" : "f16x2")
      .append(wgsl::lib_small::source);
}

std::string digits_of(const DeviceWeight& w, bool subgroups) {
  const UnitLibraries* units = units_of(w);
  const bool paired = subgroups && units->halves;
  return format_text("const PAIRED: bool = {};\nfn of_other(v: f32) -> f32 {{ return {}; }}\n", paired,
                     paired ? "subgroupShuffleXor(v, 1u)" : "0.0")
      .append(codes_source(w.type, "scales_of"))
      .append(units->words)
      .append(wgsl::lib_digits::source)
      .append(units->digits);
}

std::string_view Lowering::bounds_of(const Clamp& clamp) {
  return clamp ? wgsl::lib_bounds::source : wgsl::lib_no_bounds::source;
}

VectorShape Lowering::vector_shape(const ProductShape& product, const DeviceWeight& w, bool fours,
                                   u32 multiple, bool may_hold) const {
  const DeviceInfo& info = device_.info();
  const KernelVariant* measured = options_.tuning == nullptr ? nullptr : options_.tuning->find(product);
  VectorShape shape{.with = measured == nullptr ? options_.vector : measured->vector};
  VectorOptions& with = shape.with;
  const bool integers = fours && product.cols % 64 == 0 && info.integer_dots && units_of(w) != nullptr;
  // Apple's GPUs have no instruction for dot4I8Packed: there it is a dozen others.
  const bool soon = !info.software && info.vendor != "apple";
  const u64 large = product.cols > 2560 ? 16 << 20 : 40 << 20;  // weights
  if (integers && may_hold && with.held.value_or(soon && u64{product.rows} * product.cols >= large)) {
    constexpr u32 kThreads = 512, kMemory = 48 << 10;
    shape.held = held_shape(product, multiple,
                            std::min(with.threads > 0 ? with.threads : kThreads, info.max_invocations),
                            std::min(info.max_workgroup_memory, kMemory));
    shape.rows = shape.held->teams * shape.held->each;
    return shape;
  }
  with.units = with.units.value_or(!info.software);
  with.digits = *with.units && integers && with.digits.value_or(soon);
  with.subgroups = with.subgroups && info.subgroups;
  const VectorOptions suits =
      info.software ? VectorOptions{{}, threads_, threads_, 4} : vector_table(product, *with.digits);
  if (with.threads == 0) with.threads = suits.threads;
  with.lanes = std::min(with.threads, with.lanes > 0 ? with.lanes : suits.lanes);
  with.rows = std::max(with.rows > 0 ? with.rows : suits.rows, multiple / 4);
  while (with.threads / with.lanes * with.rows % multiple != 0) with.rows *= 2;
  CHECK(with.threads % with.lanes == 0 && with.lanes % with.rows == 0);
  shape.rows = with.threads / with.lanes * with.rows;
  return shape;
}

std::string Lowering::multiplies_vector(std::string_view kernel, const ProductShape& product,
                                        const VectorShape& shape, const DeviceWeight& w, bool fours,
                                        std::string_view more) {
  plan_.products_.emplace_back(dispatches_.size(), product);
  std::string text = shape.held ? holds_vector(*shape.held, w) : shares_vector(shape.with, w, fours);
  return text.append(more).append(kernel);
}

std::string Lowering::shares_vector(const VectorOptions& with, const DeviceWeight& w, bool fours) const {
  const bool units = *with.units;
  std::string text = format_text(
      "{}const WG: u32 = {}u;\nconst LANES: u32 = {}u;\nconst ROWS: u32 = {}u;\nalias Word = {};\n",
      with.subgroups || sums_by_subgroups() ? "enable subgroups;\n" : "", with.threads, with.lanes, with.rows,
      units && reads_wide(w) ? "vec4u" : "u32");
  if (with.subgroups)
    text += format_text("const SUBGROUP: u32 = {}u;\n", std::min(with.lanes, least_subgroup(device_.info())));
  text.append(wgsl::lib_numbers::source)
      .append(fours ? wgsl::lib_arena_fours::source : wgsl::lib_arena_ones::source);
  if (units) {
    text.append(*with.digits ? digits_common(device_.info()).append(digits_of(w, sums_by_subgroups()))
                             : unit_source(w))
        .append(*with.digits ? wgsl::lib_chunk_digits::source : wgsl::lib_chunk_floats::source)
        .append(wgsl::lib_product::source);
  } else {
    text.append(wgsl::lib_bytes::source).append(format_source(w)).append(wgsl::lib_product_direct::source);
  }
  return text.append(with.subgroups ? wgsl::lib_reduce_rows_subgroups::source : wgsl::lib_reduce_rows::source)
      .append(wgsl::lib_totals::source);
}

std::string Lowering::holds_vector(const HeldShape& shape, const DeviceWeight& w) const {
  return format_text(
             "{}const WG: u32 = {}u;\nconst LANES: u32 = {}u;\nconst PASSES: u32 = {}u;\nconst EACH: u32 = "
             "{}u;\n"
             "const BATCH: u32 = {}u;\nalias Word = vec4u;\n",
             sums_by_subgroups() ? "enable subgroups;\n" : "", shape.lanes * shape.teams, shape.lanes,
             shape.passes, shape.each, shape.batch)
      .append(wgsl::lib_numbers::source)
      .append(wgsl::lib_arena_fours::source)
      .append(digits_common(device_.info()))
      .append(digits_of(w, sums_by_subgroups()))
      .append(wgsl::lib_product_held::source);
}

bool Lowering::sums_by_subgroups() const {
  const DeviceInfo& info = device_.info();
  return info.subgroups && (info.vendor == "nvidia" || (info.software && options_.vector.subgroups));
}

std::string Lowering::sums_source() const {
  if (!sums_by_subgroups()) return std::string(wgsl::lib_reduce::source);
  return format_text("const SUBGROUP_SIZE: u32 = {}u;\n", least_subgroup(device_.info()))
      .append(wgsl::lib_reduce_subgroups::source);
}

std::string Lowering::vector_source(std::size_t bindings, bool normed, const VectorNorms& norms,
                                    const VectorShape& shape) const {
  if (!normed) return std::string(wgsl::lib_vector::source);
  // Those that hold the vector are made for their shape, and so for their norms.
  const std::string bits = shape.held ? format_text("{}u", norms.bits()) : std::string("p.norms");
  return format_text("const NORMS: u32 = {}u;\nconst COLS: u32 = {}u;\nfn norms() -> u32 {{ return {}; }}\n",
                     bindings + 1, normed_cols_, bits)
      .append(sums_source())
      .append(wgsl::lib_vector_norms::source);
}

ProductShape Lowering::shape_of(const op::ExpertMatMul& op, bool gated) const {
  return {gated ? ProductKind::kGated : ProductKind::kOne, weight(op.weight).type,
          op.weight.rows * op.ids.cols, op.x.cols};
}

template <class Params>
void Lowering::set_vector(Params& params, const Tensor& x, const VectorNorms& norms) const {
  params.cols = x.cols;
  const Tensor& from = norms.source(x);
  params.x = at(from), params.x_stride = stride(from);
  if (norms.sum != nullptr) {
    params.added = at(norms.sum->a), params.added_stride = stride(norms.sum->a);
    params.sum = at(norms.sum->out), params.sum_stride = stride(norms.sum->out);
    params.eps = norms.norm->eps, params.norm_scale = norms.norm->scale;
    params.sum_scale = norms.sum->scale * scalar(norms.sum->scale_by);
  }
  if (norms.next != nullptr) {
    params.next = at(norms.next->out), params.next_stride = stride(norms.next->out);
    params.next_eps = norms.next->eps, params.next_scale = norms.next->scale;
  }
  params.norms = norms.bits();
}

template <class Params, class Io>
Status Lowering::add_product(std::string label, const std::string& text, const Params& params, const Io& io,
                             const VectorNorms& norms, bool normed, Grid grid) {
  if (!normed) return add(std::move(label), text, params, io, grid);
  std::vector<std::byte> bytes(sizeof(Params));
  std::memcpy(bytes.data(), &params, sizeof(Params));
  const auto own = io.views();
  std::vector<BufferView> views(own.begin(), own.end());
  views.push_back(vector(norms.norm != nullptr ? norms.norm->weight : Weight{}));
  views.push_back(vector(norms.next != nullptr ? norms.next->weight : Weight{}));
  return emit(norms ? label + " normed" : std::move(label), text, std::move(bytes), views, grid);
}

Status Lowering::lower_vector(const op::MatMul& op, const Tensor& result, u32 gate, const Tensor& other,
                              const VectorNorms& norms) {
  const DeviceWeight& w = weight(op.weight);
  const Clamp& c = op.clamp;
  for (const auto& tile : w.tiles) {
    const bool fours = in_fours(op.x) && in_fours(result) && (gate == 0 || in_fours(other)) &&
                       tile.first % 4 == 0 && tile.count % 4 == 0;
    const ProductShape product{ProductKind::kOne, w.type, op.weight.rows, op.x.cols};
    const VectorShape shape = vector_shape(product, w, fours, 4);
    // Those that hold the vector are made for their shape, so there is nothing to share.
    const bool normed = norms || (fours && normed_cols_ > 0 && !c && !shape.held);
    std::string more(bounds_of(c));
    more.append(wgsl::lib_gelu::source)
        .append(vector_source(bindings_of<wgsl::mat_vec::Io>, normed, norms, shape));
    const std::string text = multiplies_vector(wgsl::mat_vec::source, product, shape, w, fours, more);
    wgsl::mat_vec::Params params{};
    set_vector(params, op.x, norms);
    params.out = at(result) + tile.first, params.out_stride = stride(result);
    if (gate > 0) params.other = at(other) + tile.first, params.other_stride = stride(other);
    params.rows = tile.count, params.row_bytes = w.row_bytes;
    params.scale = op.scale * scalar(op.scale_by), params.gate = gate;
    params.in_min = c.in_min, params.in_max = c.in_max, params.out_min = c.out_min,
    params.out_max = c.out_max;
    TRY(add_product(format_text("mat_vec {}{}", dtype_name(w.type), gate > 0 ? " gated" : ""), text, params,
                    wgsl::mat_vec::Io{arena(), tile.view()}, norms, normed,
                    {groups(tile.count, shape.rows), op.x.rows}));
  }
  return {};
}

Status Lowering::lower_gated(const Step& step, const VectorNorms& norms) {
  const auto& gate = op_at<op::MatMul>(step.first);
  if (step.count == 2) {
    const auto& mul = op_at<op::GeluMul>(step.first + 1);
    return lower_vector(gate, mul.out, 1, mul.up, norms);
  }
  const auto& up = op_at<op::MatMul>(step.first + 1);
  const Tensor& out = op_at<op::GeluMul>(step.first + 2).out;
  if (in_one_piece(gate) && in_one_piece(up)) return lower_pair(gate, up, out, norms);
  TRY(lower(gate));
  return lower_vector(up, out, 2, gate.out);
}

Status Lowering::lower_pair(const op::MatMul& gate, const op::MatMul& up, const Tensor& out,
                            const VectorNorms& norms) {
  const DeviceWeight& w = weight(gate.weight);
  const bool fours = in_fours(gate.x) && in_fours(out);
  const ProductShape product{ProductKind::kGated, w.type, 2 * gate.weight.rows, gate.x.cols};
  const VectorShape shape = vector_shape(product, w, fours, 8);
  const std::string more =
      vector_source(bindings_of<wgsl::gated_mat_vec::Io>, static_cast<bool>(norms), norms, shape)
          .append(wgsl::lib_gelu::source);
  const std::string text = multiplies_vector(wgsl::gated_mat_vec::source, product, shape, w, fours, more);
  wgsl::gated_mat_vec::Params params{};
  set_vector(params, gate.x, norms);
  params.out = at(out), params.out_stride = stride(out);
  params.rows = gate.weight.rows, params.row_bytes = w.row_bytes;
  params.gate_scale = gate.scale * scalar(gate.scale_by);
  params.up_scale = up.scale * scalar(up.scale_by);
  return add_product(format_text("gated_mat_vec {}", dtype_name(w.type)), text, params,
                     wgsl::gated_mat_vec::Io{arena(), w.tiles[0].view(), weight(up.weight).tiles[0].view()},
                     norms, static_cast<bool>(norms),
                     {groups(gate.weight.rows, shape.rows / 2), gate.x.rows});
}

std::vector<const op::MatMul*> Lowering::products_of(const Step& step) const {
  std::vector<const op::MatMul*> out;
  for (std::size_t i = step.norms; i < step.count; ++i) {
    if (const auto* product = std::get_if<op::MatMul>(&graph_.ops()[step.first + i])) out.push_back(product);
  }
  return out;
}

std::vector<const op::MatMul*> Lowering::side_by_side(const Step& step) const {
  std::vector<const op::MatMul*> ops = products_of(step);
  if (!std::ranges::all_of(ops, [&](const op::MatMul* op) { return in_one_piece(*op); })) return {};
  const auto view = [&](const op::MatMul* op) { return weight(op->weight).tiles[0].view(); };
  const auto apart = [&](const op::MatMul* a, const op::MatMul* b) {
    return view(a).buffer != view(b).buffer || view(a).offset + view(a).bytes != view(b).offset ||
           !same_form(weight(a->weight), weight(b->weight));
  };
  std::ranges::sort(ops, {}, [&](const op::MatMul* op) { return view(op).offset; });
  const u64 bytes = view(ops.back()).offset + view(ops.back()).bytes - view(ops[0]).offset;
  if (std::ranges::adjacent_find(ops, apart) != ops.end() || bytes > device_.info().max_binding) return {};
  return ops;
}

Status Lowering::lower_products(const Step& step, const VectorNorms& norms) {
  std::vector<const op::MatMul*> ops = side_by_side(step);
  if (ops.empty()) {
    for (std::size_t i = 0; i < step.count; ++i) TRY(lower(op_at<op::MatMul>(step.first + i)));
    return {};
  }
  std::array<u32, 3> rows{};
  BufferView all = weight(ops[0]->weight).tiles[0].view();
  all.bytes = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    rows[i] = ops[i]->weight.rows;
    all.bytes += weight(ops[i]->weight).tiles[0].bytes;
  }
  ops.resize(3, ops.back());  // of the third, where there is none, no rows
  const op::MatMul& first = *ops[0];
  const DeviceWeight& w = weight(first.weight);
  const bool fours =
      in_fours(first.x) && std::ranges::all_of(ops, [&](const op::MatMul* op) { return in_fours(op->out); });
  const ProductShape product{ProductKind::kSeveral, w.type, rows[0] + rows[1] + rows[2], first.x.cols};
  const VectorShape shape = vector_shape(product, w, fours, 4);
  const std::string text = multiplies_vector(
      wgsl::mat_vecs::source, product, shape, w, fours,
      vector_source(bindings_of<wgsl::mat_vecs::Io>, static_cast<bool>(norms), norms, shape));
  const auto scale = [&](std::size_t i) { return ops[i]->scale * scalar(ops[i]->scale_by); };
  wgsl::mat_vecs::Params params{};
  set_vector(params, first.x, norms);
  params.row_bytes = w.row_bytes;
  params.rows = rows[0], params.rows_2 = rows[1], params.rows_3 = rows[2];
  params.out = at(ops[0]->out), params.out_2 = at(ops[1]->out), params.out_3 = at(ops[2]->out);
  params.out_stride = stride(ops[0]->out), params.out_2_stride = stride(ops[1]->out);
  params.out_3_stride = stride(ops[2]->out);
  params.scale = scale(0), params.scale_2 = scale(1), params.scale_3 = scale(2);
  u32 count = 0;
  for (const u32 n : rows) count += groups(n, shape.rows);
  return add_product(format_text("mat_vecs {}", dtype_name(w.type)), text, params,
                     wgsl::mat_vecs::Io{arena(), all}, norms, static_cast<bool>(norms),
                     {count, first.x.rows});
}

// Every workgroup makes the choice, so of many tokens or experts it is made before; and tokens whose ids
// share four numbers would be written by several.
bool Lowering::chooses(const op::TopExperts& choice, u32 threads) const {
  const Tensor& ids = choice.ids;
  return ids.rows <= kVectorTokens && choice.logits.cols <= threads && (ids.rows == 1 || ids.cols % 4 == 0) &&
         device_.info().max_workgroup_memory >= kRoomForMore;
}

Status Lowering::lower_experts(const op::ExpertMatMul& op, const Tensor& result, bool gated,
                               const op::TopExperts* choice, const VectorNorms& norms) {
  const DeviceWeight& w = weight(op.weight);
  const bool fours = in_fours(op.x) && in_fours(result);
  const ProductShape product = shape_of(op, gated);
  const VectorShape shape = vector_shape(product, w, fours, gated ? 8 : 4, !gated);
  if (choice != nullptr && !chooses(*choice, shape.with.threads)) {
    TRY(lower(*choice));
    choice = nullptr;
  }
  std::string more = format_text("const GATED: bool = {};\n", gated);
  if (choice != nullptr)
    more += format_text("const EXPERTS: u32 = {}u;\nconst USED: u32 = {}u;\n", choice->logits.cols,
                        choice->ids.cols);
  more.append(choice != nullptr ? wgsl::lib_choose::source : wgsl::lib_chosen::source)
      .append(wgsl::lib_gelu::source)
      .append(vector_source(bindings_of<wgsl::expert_mat_vec::Io>, static_cast<bool>(norms), norms, shape));
  for (const auto& tile : w.tiles) {
    wgsl::expert_mat_vec::Params params{};
    set_vector(params, op.x, norms);
    params.x_per_token = op.x.rows == op.ids.rows ? 1 : 0;
    params.out = at(result), params.out_stride = stride(result);
    params.ids = at(op.ids), params.ids_stride = stride(op.ids), params.used = op.ids.cols;
    if (choice != nullptr) {
      params.logits = at(choice->logits), params.logits_stride = stride(choice->logits);
      params.weights = at(choice->weights), params.weights_stride = stride(choice->weights);
    }
    params.rows = op.weight.rows, params.row_bytes = w.row_bytes;
    params.first = tile.first, params.count = tile.count;
    const std::string text = multiplies_vector(wgsl::expert_mat_vec::source, product, shape, w, fours, more);
    TRY(add_product(format_text("expert_{} {}", product_name(product.kind), dtype_name(w.type)), text, params,
                    wgsl::expert_mat_vec::Io{arena(), tile.view(), vector(op.scale_by)}, norms,
                    static_cast<bool>(norms), {groups(op.weight.rows, shape.rows), result.rows}));
  }
  return {};
}

}  // namespace bezel

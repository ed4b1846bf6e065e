// Norms, and the steps that begin with one.
#include <bit>

#include "base/format_text.h"
#include "graph/lowering.h"
#include "kernels/expert_mix.wgsl.h"
#include "kernels/lib_fours.wgsl.h"
#include "kernels/lib_head.wgsl.h"
#include "kernels/lib_ones.wgsl.h"
#include "kernels/lib_reduce.wgsl.h"
#include "kernels/lib_rings_written.wgsl.h"
#include "kernels/lib_turn.wgsl.h"
#include "kernels/norm_rope.wgsl.h"
#include "kernels/norm_rope_kv.wgsl.h"
#include "kernels/residual.wgsl.h"
#include "kernels/rms_norm.wgsl.h"

namespace bezel {

u32 Lowering::sweep_threads(u32 items) const {
  // One workgroup does it all, so it should be large; but not larger than there is work.
  const u32 most = options_.workgroup > 0    ? std::bit_floor(options_.workgroup)
                   : device_.info().software ? threads_
                                             : std::min(256u, device_.info().max_invocations);
  return std::min(most, std::max(16u, std::bit_ceil(items)));
}

std::string Lowering::sweep(u32 items, bool fours, std::string_view constants,
                            std::string_view kernel) const {
  const u32 values = fours ? items / 4 : items;
  const u32 threads = sweep_threads(values);
  std::string text =
      format_text("{}const WG: u32 = {}u;\nconst PER: u32 = {}u;\n",
                  sums_by_subgroups() ? "enable subgroups;\n" : "", threads, groups(values, threads));
  return text.append(constants)
      .append(fours ? wgsl::lib_fours::source : wgsl::lib_ones::source)
      .append(sums_source())
      .append(kernel);
}

Status Lowering::lower(const op::RmsNorm& op) {
  const wgsl::rms_norm::Params params{at(op.x), stride(op.x), at(op.out), stride(op.out),
                                      op.group, op.eps,       op.scale};
  const bool fours = in_fours(op.x) && in_fours(op.out) && op.group % 4 == 0;
  return add("rms_norm", sweep(op.group, fours, {}, wgsl::rms_norm::source), params,
             wgsl::rms_norm::Io{arena(), vector(op.weight)}, {op.x.cols / op.group, op.x.rows});
}

Status Lowering::lower_residual(const op::RmsNorm& norm, const op::Add& sum, const op::RmsNorm* next) {
  const Tensor& out = next != nullptr ? next->out : sum.out;
  const wgsl::residual::Params params{at(norm.x),
                                      stride(norm.x),
                                      at(sum.a),
                                      stride(sum.a),
                                      at(sum.out),
                                      stride(sum.out),
                                      at(out),
                                      stride(out),
                                      norm.x.cols,
                                      norm.eps,
                                      norm.scale,
                                      sum.scale * scalar(sum.scale_by),
                                      next != nullptr ? next->eps : 0,
                                      next != nullptr ? next->scale : 0};
  const bool fours = in_fours(norm.x) && in_fours(sum.a) && in_fours(sum.out) && in_fours(out);
  return add(
      next != nullptr ? "residual_norm" : "residual",
      sweep(norm.x.cols, fours, format_text("const NEXT: bool = {};\n", next != nullptr),
            wgsl::residual::source),
      params,
      wgsl::residual::Io{arena(), vector(norm.weight), vector(next != nullptr ? next->weight : Weight{})},
      {norm.x.rows});
}

Status Lowering::lower_mix(const Step& step) {
  const auto& experts = op_at<op::ExpertSum>(step.first);
  const auto &dense = op_at<op::RmsNorm>(step.first + 1), &mixed = op_at<op::RmsNorm>(step.first + 2);
  const auto& norm = op_at<op::RmsNorm>(step.first + 4);
  const auto& sum = op_at<op::Add>(step.first + 5);
  const wgsl::expert_mix::Params params{at(experts.y),
                                        stride(experts.y),
                                        at(experts.weights),
                                        stride(experts.weights),
                                        at(dense.x),
                                        stride(dense.x),
                                        at(sum.a),
                                        stride(sum.a),
                                        at(sum.out),
                                        stride(sum.out),
                                        sum.out.cols,
                                        norm.eps,
                                        sum.scale * scalar(sum.scale_by)};
  const bool fours = in_fours(experts.y) && in_fours(dense.x) && in_fours(sum.a) && in_fours(sum.out);
  return add("expert_mix",
             sweep(sum.out.cols, fours, format_text("const USED: u32 = {}u;\n", experts.weights.cols),
                   wgsl::expert_mix::source),
             params,
             wgsl::expert_mix::Io{arena(), vector(dense.weight), vector(mixed.weight), vector(norm.weight)},
             {sum.out.rows});
}

std::string Lowering::per_head(u32 head_size, std::string_view kernel) const {
  const u32 pairs = head_size / 4;
  const u32 threads = sweep_threads(pairs);
  std::string text = format_text("const WG: u32 = {}u;\nconst PER: u32 = {}u;\nconst HEAD: u32 = {}u;\n",
                                 threads, groups(pairs, threads), head_size);
  return text.append(wgsl::lib_reduce::source)
      .append(wgsl::lib_turn::source)
      .append(wgsl::lib_head::source)
      .append(kernel);
}

Status Lowering::lower_queries(const op::RmsNorm& norm, const op::Rope& rope) {
  const wgsl::norm_rope::Params params{at(norm.x),       stride(norm.x),     at(rope.out),
                                       stride(rope.out), at(rope.positions), stride(rope.positions),
                                       norm.eps};
  return add("norm_rope", per_head(norm.group, wgsl::norm_rope::source), params,
             wgsl::norm_rope::Io{arena(), vector(norm.weight), plan_.tables_[rope.frequencies].view()},
             {norm.x.cols / norm.group, norm.x.rows});
}

Status Lowering::lower_heads(const Step& step) {
  if (step.count == 2) return lower_queries(op_at<op::RmsNorm>(step.first), op_at<op::Rope>(step.first + 1));
  const bool queries = step.count == 7;
  const std::size_t first = step.first + (queries ? 2 : 0);
  const auto &k = op_at<op::RmsNorm>(first), &v = op_at<op::RmsNorm>(first + 3);
  const auto& rope = op_at<op::Rope>(first + 1);
  const auto &keys = op_at<op::KvWrite>(first + 2), &values = op_at<op::KvWrite>(first + 4);
  wgsl::norm_rope_kv::Params params{.q = 0,
                                    .q_stride = 0,
                                    .out = 0,
                                    .out_stride = 0,
                                    .k = at(k.x),
                                    .k_stride = stride(k.x),
                                    .v = at(v.x),
                                    .v_stride = stride(v.x),
                                    .positions = at(rope.positions),
                                    .positions_stride = stride(rope.positions),
                                    .q_heads = 0,
                                    .kv_heads = k.x.cols / k.group,
                                    .slots = keys.ring.rows,
                                    .eps = k.eps};
  BufferView q_weight = weights_.ones.view();
  if (queries) {
    const auto& q = op_at<op::RmsNorm>(step.first);
    const Tensor& out = op_at<op::Rope>(step.first + 1).out;
    params.q = at(q.x), params.q_stride = stride(q.x);
    params.out = at(out), params.out_stride = stride(out);
    params.q_heads = q.x.cols / q.group;
    q_weight = vector(q.weight);
  }
  return add(
      "norm_rope_kv",
      kv().append(wgsl::lib_rings_written::source).append(per_head(k.group, wgsl::norm_rope_kv::source)),
      params,
      wgsl::norm_rope_kv::Io{arena(), q_weight, vector(k.weight), plan_.tables_[rope.frequencies].view(),
                             ring(keys.ring), ring(values.ring)},
      {params.q_heads + 2 * params.kv_heads, k.x.rows});
}

const op::ExpertMatMul& Lowering::experts_of(const Step& step) const {
  return op_at<op::ExpertMatMul>(step.first + step.count - 2);
}

const Tensor& Lowering::normed_by(const Step& step) const {
  return step.kind == Step::Kind::kExpertsGated ? experts_of(step).x
                                                : op_at<op::MatMul>(step.first + step.norms).x;
}

u64 Lowering::norm_bytes(const Step& step) const {
  constexpr u64 kVectors = 4;  // two that are added, two of weights
  if (step.kind == Step::Kind::kExpertsGated) {
    const auto& experts = experts_of(step);
    const u32 together = vector_shape(shape_of(experts, true), weight(experts.weight), true, 8, false).rows;
    return kVectors * experts.x.cols * sizeof(f32) * groups(experts.weight.rows, together) * experts.out.rows;
  }
  const auto& first = op_at<op::MatMul>(step.first + step.norms);
  u32 rows = 0;
  for (const op::MatMul* product : products_of(step)) rows += product->weight.rows;
  const bool pair = step.kind == Step::Kind::kGated && rows > first.weight.rows;
  const ProductKind kind = pair                                 ? ProductKind::kGated
                           : step.kind == Step::Kind::kProducts ? ProductKind::kSeveral
                                                                : ProductKind::kOne;
  const DeviceWeight& w = weight(first.weight);
  const u32 together = vector_shape({kind, w.type, rows, first.x.cols}, w, true, pair ? 8 : 4).rows;
  return kVectors * first.x.cols * sizeof(f32) * groups(rows, together) * first.x.rows;
}

void Lowering::find_normed(std::span<const Step> steps) {
  const auto found = std::ranges::find_if(
      steps, [&](const Step& step) { return options_.fuse && step.norms > 0 && takes_norms(step); });
  if (found != steps.end()) normed_cols_ = normed_by(*found).cols;
}

bool Lowering::takes_norms(const Step& step) const {
  // About 3 us of a large GPU's second-level cache, where a dispatch costs 4.
  constexpr u64 kBytes = 16 << 20;
  const DeviceInfo& info = device_.info();
  const u32 cols = normed_by(step).cols;
  if (normed_cols_ > 0 && cols != normed_cols_) return false;
  if (norm_bytes(step) > options_.norm_in_product.value_or(info.software ? 0 : kBytes) ||
      info.max_workgroup_memory < kRoomForMore)
    return false;
  bool fits = true;
  const auto in_fours_too = [&](const Tensor& x) { fits = fits && in_fours(x); };
  for (std::size_t i = 0; i < step.count; ++i) {
    const Op& op = graph_.ops()[step.first + i];
    std::visit([&](const auto& o) { o.tensors(in_fours_too, in_fours_too); }, op);
    if (const auto* product = std::get_if<op::MatMul>(&op)) fits = fits && in_one_piece(*product);
  }
  return fits && (step.kind != Step::Kind::kProducts || !side_by_side(step).empty());
}

VectorNorms Lowering::norms_of(const Step& step) const {
  VectorNorms norms{.keep = step.keep};
  if (step.norms > 1) {
    norms.norm = &op_at<op::RmsNorm>(step.first);
    norms.sum = &op_at<op::Add>(step.first + 1);
  }
  if (step.norms % 2 == 1) norms.next = &op_at<op::RmsNorm>(step.first + step.norms - 1);
  return norms;
}

Status Lowering::lower_normed(const Step& step) {
  const VectorNorms norms = norms_of(step);
  const Step products{step.kind, step.first + step.norms, step.count - step.norms};
  if (takes_norms(step)) return lower_kind(products, norms);
  TRY(lower(Step{step.norms > 1 ? Step::Kind::kResidual : Step::Kind::kOne, step.first, step.norms}));
  return lower_kind(products, {});
}

Status Lowering::lower_kind(const Step& step, const VectorNorms& norms) {
  switch (step.kind) {
    case Step::Kind::kResidual:
      return lower_residual(op_at<op::RmsNorm>(step.first), op_at<op::Add>(step.first + 1),
                            step.count == 3 ? &op_at<op::RmsNorm>(step.first + 2) : nullptr);
    case Step::Kind::kHeads:
      return lower_heads(step);
    case Step::Kind::kAttend:
      return lower_attention(step);
    case Step::Kind::kGated:
      return lower_gated(step, norms);
    case Step::Kind::kProducts:
      return lower_products(step, norms);
    case Step::Kind::kExpertsGated:
      return lower_experts(experts_of(step), op_at<op::GeluMul>(step.first + step.count - 1).out, true,
                           std::get_if<op::TopExperts>(&graph_.ops()[step.first]), norms);
    case Step::Kind::kMix:
      return lower_mix(step);
    case Step::Kind::kOne:
      break;
  }
  if (norms) {
    const auto& product = op_at<op::MatMul>(step.first);
    return lower_vector(product, product.out, 0, {}, norms);
  }
  return std::visit([&](const auto& op) { return lower(op); }, graph_.ops()[step.first]);
}

Status Lowering::lower(const Step& step) {
  if (options_.fuse) return step.norms > 0 ? lower_normed(step) : lower_kind(step, {});
  for (std::size_t i = 0; i < step.count; ++i)
    TRY(std::visit([&](const auto& op) { return lower(op); }, graph_.ops()[step.first + i]));
  return {};
}

}  // namespace bezel

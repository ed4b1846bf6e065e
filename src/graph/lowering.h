// Turns a graph's operations into dispatches; what Plan::build does, and nobody else.
#pragma once
#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "graph/fuse.h"
#include "graph/plan.h"
#include "kernels/relay.wgsl.h"

namespace bezel {

inline u32 groups(u64 items, u32 each) { return static_cast<u32>((items + each - 1) / each); }

// With sums of squares, or a choice of experts, a product takes a little more workgroup memory than the 16
// KiB that every device has.
inline constexpr u32 kRoomForMore = 20 << 10;

// Whether all that is read of a row begins at a multiple of 16 bytes.
bool reads_wide(const DeviceWeight& w);

// Whether it is multiplied in units of 64 by integers, if the device can; and what tells a kernel how: in all
// kernels, and for this type.
bool has_digits(const DeviceWeight& w);
std::string digits_common(const DeviceInfo& info);
std::string digits_of(const DeviceWeight& w, bool subgroups);

// Constants of lib_product_held.wgsl, but for LANES * teams threads.
struct HeldShape {
  u32 lanes = 0, passes = 0, teams = 0, each = 0, batch = 0;
};

// How a product with a vector is computed: options without zeros, or with the vector in registers.
struct VectorShape {
  VectorOptions with;
  std::optional<HeldShape> held = {};
  u32 rows = 0;  // that one workgroup takes
};

// A kernel that multiplies tiles, and their size.
struct TileKernel {
  std::string text;
  u32 rows, tokens;
};

// What the vector of a product is made of, see lib_vector_norms.wgsl; nothing, where it is in the arena.
struct VectorNorms {
  const op::RmsNorm* norm = nullptr;  // with `sum`: a residual
  const op::Add* sum = nullptr;
  const op::RmsNorm* next = nullptr;
  bool keep = false;  // what `next` gives has other readers
  explicit operator bool() const { return sum != nullptr || next != nullptr; }
  // What a product of `x` reads instead.
  const Tensor& source(const Tensor& x) const {
    return sum != nullptr ? norm->x : next != nullptr ? next->x : x;
  }
  static constexpr u32 kAdd = 1, kNext = 2, kKeep = 4;
  u32 bits() const {
    return (sum != nullptr ? kAdd : 0) | (next != nullptr ? kNext : 0) | (keep ? kKeep : 0);
  }
};

class Lowering {
 public:
  Lowering(Device& device, const Graph& graph, const DeviceWeights& weights, std::span<const Buffer> states,
           PlanOptions options, Plan& plan);

  // All of the graph, without a program of it: its kernels then compile.
  Status lower();
  Status run();
  // What counts the workgroups that run at the same time; nothing, where no relay is.
  Result<Program> meeting();

 private:
  // A kernel's text: constants, then libraries, then the kernel. WGSL allows use before declaration.
  std::string assemble(std::initializer_list<std::string_view> parts) const;
  std::string reads_weights(std::string_view kernel, const DeviceWeight& w, std::string_view more = {},
                            std::string_view and_more = {}) const;
  // What keeps a product within bounds, if there are some.
  static std::string_view bounds_of(const Clamp& clamp);
  // How to multiply so many rows with tokens, of a weight with so many columns, which subgroup matrices may
  // multiply, or of none.
  TileOptions tiles_for(u32 rows, u32 tokens, const DeviceWeight* w = nullptr, u32 cols = 0) const;
  // The next dispatch is a product in tiles.
  void note_tiles(const op::MatMul& op, const DeviceWeight& w);
  Status lower_matrix(const op::MatMul& op, const TileOptions& tiles);
  // x as pairs of halves, if it is not there already; needs tokens in whole tiles.
  Status halve(const op::MatMul& op);
  Status make_halves();
  struct Halves {
    u32 pitch;       // numbers from row to row
    u64 first, end;  // bytes, after the factors
  };
  static Halves halves_of(const op::MatMul& op);
  TileKernel multiplies_tiles(std::string_view kernel, const DeviceWeight& w, const TileOptions& tiles,
                              bool fours, std::string_view bounds) const;
  // `fours`: all that is read and written of the arena is in fours. A workgroup takes a multiple of so many
  // rows, and may hold the vector.
  VectorShape vector_shape(const ProductShape& product, const DeviceWeight& w, bool fours, u32 multiple,
                           bool may_hold = true) const;
  // The text of the next dispatch. `more` are constants and functions that the kernel asks for.
  std::string multiplies_vector(std::string_view kernel, const ProductShape& product,
                                const VectorShape& shape, const DeviceWeight& w, bool fours,
                                std::string_view more);
  // What its text begins with: a workgroup's threads share the vector, or hold parts of it in registers.
  std::string shares_vector(const VectorOptions& with, const DeviceWeight& w, bool fours) const;
  std::string holds_vector(const HeldShape& shape, const DeviceWeight& w) const;
  // Whether norms add up by subgroups and quarters of a vector are paired (lib_digits.wgsl), which their text
  // then enables; and what norms add up with.
  bool sums_by_subgroups() const;
  std::string sums_source() const;

  u32 at(const Tensor& x) const { return static_cast<u32>(plan_.layout_.offset[x.buffer] + x.offset); }
  static u32 stride(const Tensor& x) { return static_cast<u32>(x.stride); }
  // Whether every row begins at a multiple of four elements and has whole fours of them.
  bool in_fours(const Tensor& x) const {
    return at(x) % 4 == 0 && (x.stride % 4 == 0 || x.rows == 1) && x.cols % 4 == 0;
  }
  BufferView arena() const { return plan_.arena_->view(); }
  BufferView ring(const Tensor& x) const {
    return states_.empty() ? BufferView{} : states_[graph_.buffers()[x.buffer].index].view();
  }
  const DeviceWeight& weight(const Weight& w) const { return weights_.tensors[w.index]; }
  // A vector of numbers, or of ones where there is none.
  BufferView vector(const Weight& w) const { return w ? weight(w).tiles[0].view() : weights_.ones.view(); }
  f32 scalar(const Weight& w) const { return w ? weight(w).scalar : 1.0f; }
  std::string kv() const;
  Grid elements(const Tensor& x) const { return {groups(x.cols, threads_), x.rows}; }
  // Threads for a workgroup that goes over `items` and sums: a power of two.
  u32 sweep_threads(u32 items) const;
  // Text of a kernel whose workgroups go over `items` numbers, by fours or one by one.
  std::string sweep(u32 items, bool fours, std::string_view constants, std::string_view kernel) const;
  std::string per_head(u32 head_size, std::string_view kernel) const;

  template <class Params, class Io>
  Status add(std::string label, const std::string& text, const Params& params, const Io& io, Grid grid) {
    std::vector<std::byte> bytes(sizeof(Params));
    std::memcpy(bytes.data(), &params, sizeof(Params));
    const auto views = io.views();
    return emit(std::move(label), text, std::move(bytes), views, grid);
  }
  Status emit(std::string label, const std::string& text, std::vector<std::byte> params,
              std::span<const BufferView> views, Grid grid);

  template <class T>
  const T& op_at(std::size_t index) const {
    return std::get<T>(graph_.ops()[index]);
  }
  Status lower(const Step& step);
  Status lower_residual(const op::RmsNorm& norm, const op::Add& sum, const op::RmsNorm* next);
  Status lower_heads(const Step& step);
  Status lower_mix(const Step& step);
  // `result`: of the product, or where it is gated of that. `choice`: where the product makes it.
  Status lower_experts(const op::ExpertMatMul& op, const Tensor& result, bool gated,
                       const op::TopExperts* choice = nullptr, const VectorNorms& norms = {});
  // Whether a product of so many threads a workgroup makes it.
  bool chooses(const op::TopExperts& choice, u32 threads) const;
  const op::ExpertMatMul& experts_of(const Step& step) const;
  // As a product that all experts of a token are together.
  ProductShape shape_of(const op::ExpertMatMul& op, bool gated) const;
  // A step of products and the norms before them: in one dispatch if that is wanted and all of it fits.
  Status lower_normed(const Step& step);
  bool takes_norms(const Step& step) const;
  const Tensor& normed_by(const Step& step) const;  // what the norms before its products give
  void find_normed(std::span<const Step> steps);    // sets normed_cols_
  // What all workgroups of such a step's products read to compute the norms.
  u64 norm_bytes(const Step& step) const;
  // Those of one kind, without the norms before them.
  Status lower_kind(const Step& step, const VectorNorms& norms);
  Status lower_gated(const Step& step, const VectorNorms& norms);
  Status lower_products(const Step& step, const VectorNorms& norms);
  Status lower_pair(const op::MatMul& gate, const op::MatMul& up, const Tensor& out,
                    const VectorNorms& norms);
  // The products of such a step in the order in which one binding has their weights; none, where they do not
  // lie one after the other.
  std::vector<const op::MatMul*> side_by_side(const Step& step) const;
  bool in_one_piece(const op::MatMul& op) const { return weight(op.weight).tiles.size() == 1; }
  // `gate` and `other` as in mat_vec.wgsl.
  Status lower_vector(const op::MatMul& op, const Tensor& result, u32 gate, const Tensor& other,
                      const VectorNorms& norms = {});
  // How a kernel of so many bindings gets its vector: with norms, if it has some, or if it shares its text
  // with products that have.
  std::string vector_source(std::size_t bindings, bool normed, const VectorNorms& norms,
                            const VectorShape& shape) const;
  // `x`: what the product reads in the graph.
  template <class Params>
  void set_vector(Params& params, const Tensor& x, const VectorNorms& norms) const;
  template <class Params, class Io>
  Status add_product(std::string label, const std::string& text, const Params& params, const Io& io,
                     const VectorNorms& norms, bool normed, Grid grid);
  // Products that follow each other as one dispatch, lowering_relay.cc.
  struct Relay {
    std::size_t first, count;  // steps
    BufferView weights;
    const op::Attention* merges = nullptr;  // the parts of which it joins
    std::vector<wgsl::relay::Leg> legs = {};
    u32 mail = 0;        // numbers; then its first place
    u32 merge_mail = 0;  // what it joined
  };
  void find_relays(std::span<const Step> steps);
  const op::Attention* merges_before(std::span<const Step> steps, std::size_t at) const;
  bool merged_by_relay(const op::Attention& op) const;
  void set_merge(wgsl::relay::Params& params, const Relay& relay) const;
  Status make_relays(std::span<const Step> steps);
  std::optional<BufferView> relay_weights(const Step& step) const;
  VectorNorms norms_of(const Step& step) const;
  std::vector<const op::MatMul*> products_of(const Step& step) const;
  const Tensor& result_of(const Step& step, const op::MatMul& product) const;
  bool goes_on(std::span<const Step> before, const Step& step) const;
  void set_legs(std::span<const Step> steps, Relay& relay);
  wgsl::relay::Leg leg_of(const Step& step, u64 weights_begin) const;
  void shape_leg(wgsl::relay::Leg& leg, u32 rows, u32 cols, u32 row_bytes, bool pair) const;
  u32 form_of(const DeviceWeight& w) const;
  std::string make_relay_text() const;
  Status lower_relay(std::size_t index);

  Status lower_queries(const op::RmsNorm& norm, const op::Rope& rope);
  Status lower(const op::EmbedRows& op);
  Status lower(const op::Splice& op);
  Status lower(const op::MatMul& op);
  Status lower(const op::RmsNorm& op);
  Status lower(const op::Rope& op);
  Status lower(const op::KvWrite& op);
  Status lower(const op::Attention& op);
  Status lower_many_queries(const op::Attention& op);
  // How heads that have the same keys and values share them; none where lib_attend.wgsl cannot.
  struct DecodeShape {
    u32 threads, queries, runs, ahead;
  };
  std::optional<DecodeShape> decode_shape(const op::Attention& op) const;
  Status lower_few_queries(const op::Attention& op);
  std::string attends(std::string_view kernel, const op::Attention& op, const DecodeShape& shape) const;
  // Joins what attention left in parts, if there are several.
  Status lower_merge(const op::Attention& op, u32 parts);
  // Heads and their attention, in one dispatch or one after the other.
  Status lower_attention(const Step& step);
  Status lower(const op::Add& op);
  Status lower(const op::GeluMul& op);
  Status lower(const op::SigmoidMul& op);
  Status lower(const op::LayerNorm& op);
  Status lower(const op::Conv& op);
  Status lower(const op::ConvTime& op);
  Status lower(const op::LocalAttention& op);
  Status lower(const op::TopExperts& op);
  Status lower(const op::GroupExperts& op);
  Status lower(const op::ExpertMatMul& op);
  Status lower(const op::ExpertSum& op);
  Status lower(const op::SoftCap& op);
  Status lower(const op::TopK& op);
  Status lower(const op::Sample& op);
  Status lower(const op::FullAttention& op);
  Status lower(const op::ShiftScale& op);
  Status lower(const op::AveragePool& op);

  Device& device_;
  const Graph& graph_;
  const DeviceWeights& weights_;
  std::span<const Buffer> states_;
  PlanOptions options_;
  Plan& plan_;
  u32 threads_ = 0;
  std::vector<Relay> relays_;
  std::string relay_text_;                  // of all of them
  std::vector<const DeviceWeight*> forms_;  // one of each type that relays multiply
  u32 relay_cols_ = 0;                      // of the vectors that they norm
  u32 relay_mail_ = 0;                      // numbers of one part of the mail
  u32 normed_cols_ = 0;                 // of the vectors that products norm, all of them alike; 0: none does
  const op::MatMul* halved_ = nullptr;  // whose x plan_.halves_ holds
  std::vector<Dispatch> dispatches_;
};

}  // namespace bezel

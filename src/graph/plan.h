// A Graph lowered to GPU dispatches: built once for a batch shape, then run many times. Nothing is allocated
// per run.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "gpu/device.h"
#include "graph/device_weights.h"
#include "graph/graph.h"
#include "graph/kv_type.h"

namespace bezel {

// All inputs and intermediate results live in one buffer, the arena, each where its lifetime leaves room. One
// binding then serves every kernel, and token ids, positions and expert numbers, exact in f32, need no other
// type.
struct Arena {
  std::vector<u64> offset;  // in elements, by graph buffer; states have none
  u64 partials = 0;         // where attention in parts and top-k keep their partial results
  u64 elements = 0;
};

// Tensors whose names are in `keep` stay readable after a run. With `relays`, what the steps of one read and
// write lies apart: they may run at the same time.
Arena lay_out(const Graph& graph, std::span<const std::string_view> keep, u32 attention_parts,
              bool relays = false);

// Few queries over many keys leave most of a GPU idle: their keys are shared out in so many parts that all
// heads of keys and all tokens have about `attention_parts` workgroups.
u32 parts_of(const op::Attention& op, u32 attention_parts);
// Heads that a workgroup takes together, because they have the same keys.
u32 queries_of(const op::Attention& op);
// Of few keys it counts how soon workgroups end, of many how often they are read.
bool sees_few(const op::Attention& op);
// What keeps a device busy.
u32 attention_parts_for(const DeviceInfo& info);

// The columns of a row that one workgroup of top-k looks at.
u32 slice_of(const op::TopK& op);

// How products with a vector are computed; zeros: what suits the device and the shape.
struct VectorOptions {
  // As many elements at once as suit a type; not set: unless the GPU is software.
  std::optional<bool> units = {};
  u32 threads = 0;         // of a workgroup
  u32 lanes = 0;           // threads that share rows; divides `threads`
  u32 rows = 0;            // that they share; divides `lanes`
  bool subgroups = false;  // sums by shuffles instead of through workgroup memory, where the device can
  // By integers, the vector as digits in workgroup memory; not set: where GPUs have an instruction for it. Of
  // types that cannot, as floats.
  std::optional<bool> digits = {};
  // By integers, every thread holding its part of the vector, of which then only `threads` counts; not set:
  // large matrices, likewise. Of types that cannot, the others.
  std::optional<bool> held = {};
};

// How products with many tokens are computed; zeros: what suits the device and the shape.
struct TileOptions {
  enum class Kind {
    kAny,
    kF32,     // every thread multiplies 4 x 4 or 8 x 8 numbers of a tile in workgroup memory
    kF16,     // the same with a tile in half precision: not exact enough to be chosen by itself
    kMatrix,  // subgroup matrices of half precision; without the device's help they are imitated, slowly
  };
  Kind kind = Kind::kAny;
  // Of a tile: 32 x 32 or multiples of 64; with matrices multiples of 64 and of 32, 256 tokens at most.
  u32 rows = 0, tokens = 0;
  u32 step = 0;  // columns at a time, a multiple of 16; with matrices 16 or 32
  // With matrices: 1 takes numbers as halves, 2 activations as sums of two halves, 3 weights too. Only 3 is
  // exact enough to be chosen by itself.
  u32 split = 0;
};

// Whether a device has the threads, the memory and the extensions for tiles without zeros.
bool tiles_fit(const DeviceInfo& info, const TileOptions& tiles);

// A product of matrices, as one dispatch computes it: with a vector, or, kTiles, with many tokens.
enum class ProductKind : u8 { kOne, kSeveral, kGated, kTiles };
struct ProductShape {
  ProductKind kind = ProductKind::kOne;
  DType type = DType::kF32;
  u32 rows = 0, cols = 0;  // rows of all its matrices together
  u32 tokens = 0;          // of kTiles
  auto operator<=>(const ProductShape&) const = default;
};

class Tuning;

// Products that follow each other as one dispatch, whose workgroups wait for one another, see relay.wgsl; the
// weights of such products lie in one buffer. Only where a device has integer_dots and subgroups.
struct RelayOptions {
  u32 groups = 0;  // workgroups that the device runs at the same time, see Plan::relay_groups(); 0: no relays
  u32 threads = 0, units = 0;  // of a workgroup, and 64 numbers each that it holds; 0: what suits the device
  bool apart =
      false;  // a dispatch for every product after all: for devices that run few workgroups at a time
};

struct PlanOptions {
  KvType kv = KvType::kF32;                  // what the rings hold
  u32 workgroup = 0;                         // threads, a multiple of 8; 0: what suits the device
  u32 attention_parts = 1;                   // workgroups among which keys are shared out, see parts_of()
  std::optional<bool> attention_tiles = {};  // queries share the keys they read; not set: if there are many
  // Heads with the same keys share what they read; not set: unless the GPU is software.
  std::optional<bool> attention_decode = {};
  // Attention of one token norms and rotates its heads and writes its keys and values; not set: likewise.
  std::optional<bool> attention_token = {};
  bool fuse = true;  // several operations in one dispatch, where a kernel does them together
  // A product with a vector computes the norms and the residual before it itself, in every workgroup, if
  // these read no more than so many bytes for it, all together; not set: as many as cost less than a
  // dispatch, none if the GPU is software.
  std::optional<u64> norm_in_product = {};
  VectorOptions vector = {};
  const Tuning* tuning = nullptr;  // what was measured on this device comes before what suits most
  TileOptions tiles = {};
  RelayOptions relay = {};     // the arena was laid out for them
  u32 dispatches_at_once = 0;  // cut into programs of so many, for run_in_parts(); 0: one program
};

class Plan {
 public:
  // `arena` has at least layout.elements f32; `states` are the KV rings by state number. All of them, and the
  // weights, must outlive the plan.
  static Result<Plan> build(Device& device, const Graph& graph, Arena layout, const Buffer& arena,
                            const DeviceWeights& weights, std::span<const Buffer> states,
                            PlanOptions options);

  // Begins to compile what build() will need, and does not wait. Only the forms of the weights count, not
  // what is in their buffers.
  static Status prepare(Device& device, const Graph& graph, Arena layout, const Buffer& arena,
                        const DeviceWeights& weights, PlanOptions options);

  // How many workgroups of such a plan's relays run at the same time for sure; 0: it has none.
  static Task<Result<u32>> relay_groups(Device& device, const Graph& graph, Arena layout, const Buffer& arena,
                                        const DeviceWeights& weights, PlanOptions options);

  // Inputs by number; one that is empty stays as the last run left it. Does not wait.
  Status run(std::span<const std::vector<f32>> inputs);
  // The same, and begins to read a row of what it gives.
  Result<Download> run_and_read(std::span<const std::vector<f32>> inputs, const Tensor& row);
  // The same for a long pass: waits for each of its programs, so that nothing else has to wait long for the
  // GPU, and asks `progress` before each; false stops with kCancelled.
  Task<Status> run_in_parts(std::span<const std::vector<f32>> inputs,
                            const std::function<bool(u64 done, u64 total)>& progress);
  // A kept tensor of the last run, row by row.
  Task<Status> read(const Tensor& x, std::vector<f32>& out);
  // Runs, and gives the nanoseconds of every dispatch.
  Task<Result<std::vector<u64>>> profile(std::span<const std::vector<f32>> inputs);

  const std::vector<std::string>& labels() const { return labels_; }  // of the dispatches, in order
  // Which of the dispatches multiply a vector, and what with.
  const std::vector<std::pair<std::size_t, ProductShape>>& products() const { return products_; }

 private:
  friend class Lowering;
  Plan() = default;
  static Plan start(Device& device, const Graph& graph, Arena layout, const Buffer& arena);
  void write(std::span<const std::vector<f32>> inputs);

  Device* device_ = nullptr;
  const Buffer* arena_ = nullptr;
  Arena layout_;
  std::vector<std::pair<u32, u32>> inputs_;  // input number, graph buffer
  std::vector<Buffer> tables_;
  Buffer halves_;  // what products with subgroup matrices multiply with, see halves.wgsl
  Buffer mail_;    // of relays, see relay.wgsl
  std::vector<std::string> labels_;
  std::vector<std::pair<std::size_t, ProductShape>> products_;
  std::vector<Program> programs_;
};

}  // namespace bezel

// A loaded text model on some device. Sessions share it; each has a KV cache of its own.
#pragma once
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "base/task.h"
#include "gpu/device.h"
#include "graph/kv_type.h"
#include "graph/tuning.h"
#include "model/text_graph.h"
#include "model/text_model.h"
#include "run/sampler.h"

namespace bezel {

// Keys and values of one session, held where the backend computes.
class KvCache {
 public:
  virtual ~KvCache() = default;
  virtual u32 context() const = 0;  // tokens it holds at most
  virtual u64 bytes() const = 0;
  // Whether, after positions below `written` were fed, everything that a token at `position` sees is still
  // there.
  virtual bool holds(u32 position, u32 written) const = 0;

  virtual const std::vector<KvRing>& rings() const = 0;
  virtual KvType type() const = 0;
  // Whole slots from `slot` on, as they are stored, of state 2i (the keys of ring i) or 2i + 1 (its values).
  virtual Task<Status> read(u32 state, u32 slot, MutableBytes out) = 0;
  virtual void write(u32 state, u32 slot, Bytes bytes) = 0;
};

// What a pass reads. `last` is there where tokens see what follows them, and then all that they see is in
// the batch.
struct Batch {
  static constexpr u32 kSoft = ~u32{0};  // instead of an id: its row of `soft` is the embedding
  std::span<const u32> ids;
  std::span<const f32> soft;  // (T, d), or empty
  std::span<const u32> last;  // the last position each one sees, or empty

  u32 size() const { return static_cast<u32>(ids.size()); }
  Batch part(u32 first, u32 count) const {
    const std::size_t width = ids.empty() ? 0 : soft.size() / ids.size();
    CHECK(last.empty() || count == size());
    return {ids.subspan(first, count), soft.subspan(first * width, count * width), last};
  }
};

// What a pass is to give: of its last `rows` tokens all logits, or, with `top` > 0 and one row, only the
// best.
struct Wanted {
  u32 rows = 0;
  u32 top = 0;
};

// The best tokens, best first: at least as many as were asked for, or the whole vocabulary.
struct Candidates {
  std::vector<Candidate> best;
  f64 log_total = 0;  // ln of the sum of e^logit over the whole vocabulary
};

struct Outputs {
  std::vector<f32> logits;  // row by row
  Candidates candidates;
};

// The launches of a pass's kernels, in order.
struct PassProfile {
  std::vector<std::string> labels;
  std::vector<u64> nanoseconds;  // of each; empty where the device has no clock for them
};

// What one product took, see Backend::time_products().
struct ProductTime {
  ProductShape shape;
  u64 nanoseconds = 0;
};

// What a step of decoding gives.
struct Chosen {
  Candidates candidates;
  u32 token = 0;  // that the device chose, which the next step may already be computing with
};

// A step of decoding that is under way. Destroying it gives its result up; the backend must outlive it.
class DecodeStep {
 public:
  virtual ~DecodeStep() = default;
  // Once. Nothing where the device was asked for too much, which it is not from here on: then the step is
  // to be begun again, and what was begun after it is of no use.
  virtual Task<Result<std::optional<Chosen>>> finish() = 0;
};

// One token to decode: its id, or what the step `after` chose, whose successor it is.
struct DecodeInput {
  u32 token = 0;
  const DecodeStep* after = nullptr;
  u32 position = 0;
  u32 top = 0;     // candidates that are wanted
  Draw draw = {};  // how to choose from them
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const TextModel& model() const = 0;
  virtual u32 batch() const = 0;    // the most tokens of one forward()
  virtual u32 block() const = 0;    // the most of a batch with `last`
  virtual u32 outputs() const = 0;  // the most rows of logits of one forward()
  virtual Result<std::unique_ptr<KvCache>> make_cache(u32 context) = 0;

  // Runs the batch at positions `position`, position + 1, ... and adds to `out` what is wanted of it. Ids are
  // below the vocabulary's size, and the tokens fit the cache: the caller has checked.
  virtual Task<Status> forward(KvCache& cache, Batch batch, u32 position, Wanted wanted, Outputs& out) = 0;

  // The same, and what it consisted of; slower, for each kernel is timed alone. On the CPU there are none.
  virtual Task<Result<PassProfile>> profile(KvCache& cache, Batch batch, u32 position, Wanted wanted,
                                            Outputs& out) {
    CO_TRY(co_await forward(cache, batch, position, wanted, out));
    co_return PassProfile{};
  }

  // Computes a pass of so many tokens `rounds` times, after as many as `warm` that do not count, with
  // products as `trial` says and else as the table does, and gives the time of each. Leaves sessions as they
  // are.
  virtual Task<Result<std::vector<ProductTime>>> time_products(u32 /*tokens*/, const Tuning& /*trial*/,
                                                               u32 /*warm*/, u32 /*rounds*/) {
    co_return fail(ErrorKind::kUnsupported, "There is no GPU whose kernels could be timed.");
  }
  // What plans made from here on choose their kernels by.
  virtual const Tuning& tuning() const {
    static const Tuning none;
    return none;
  }
  virtual void use(Tuning) {}

  // Whether the device chooses tokens itself, so that a step can begin before the last one is read.
  virtual bool decodes_ahead() const { return false; }
  // Begins a step and does not wait for it. Null where what `after` chose is no longer at hand, because
  // another pass came between.
  virtual Task<Result<std::unique_ptr<DecodeStep>>> begin(KvCache&, DecodeInput) {
    co_return std::unique_ptr<DecodeStep>();
  }
};

// Whether products that follow each other are one dispatch (RelayOptions), where it gives the same.
enum class Relays {
  kAuto,   // what a trial has shown before; else a trial on NVIDIA's GPUs, nowhere else
  kTrial,  // where a trial, when the model is loaded, shows that it is faster
  kOn,
  kOff,
};
constexpr std::array<std::string_view, 4> kRelaysNames{"auto", "trial", "on", "off"};
inline std::optional<Relays> relays_named(std::string_view name) {
  const auto found = std::ranges::find(kRelaysNames, name);
  if (found == kRelaysNames.end()) return {};
  return static_cast<Relays>(found - kRelaysNames.begin());
}

struct GpuOptions {
  u32 batch = 256;          // tokens of one pass, if their intermediate results fit
  u32 attention_parts = 0;  // workgroups among which keys are shared out; 0: what suits the device
  std::optional<u64> norm_in_product = {};  // as in PlanOptions
  Relays relays = Relays::kAuto;
  bool file_layout = false;  // weights lie as in the file where kernels can read them so: slower
  std::string tuning = {};   // Tuning::text() of an earlier time; of another device it has no effect
  // Told what a load, or a pass later on, has found out that is worth keeping.
  std::function<void(const Tuning& news)> learned = {};
};

// Where the table of per-layer embeddings is kept: gigabytes, of which a token reads one row.
enum class PerLayerTable {
  kAuto,    // with the other weights where there is room for it, else in the file
  kDevice,  // with the other weights
  kSource,  // in the file: every pass reads the rows of its tokens
};

struct LoadOptions {
  // Called with bytes done and bytes in all; false stops the load with ErrorKind::kCancelled.
  std::function<bool(u64 done, u64 total)> progress;
  // Awaited after each pass on the CPU: lets others have the thread that computes.
  std::function<Task<Status>()> pause;
  bool bf16_rope = false;  // see round_frequencies_to_bf16()
  // How keys and values are stored on a GPU, where f16 takes half the memory of f32 and half to read, and q8
  // little more than a quarter; the CPU rounds the same. q8 needs heads of a multiple of kKvBlock.
  KvType kv = KvType::kF32;
  PerLayerTable per_layer_table = PerLayerTable::kAuto;
  u64 memory_budget = 0;  // bytes that the weights may take; 0 when no limit is known
  // Where to compute; null for the CPU. It must outlive the backend and everything made from it.
  Device* device = nullptr;
  GpuOptions gpu;
};

// Whether keys and values of such heads can be stored so, and a GPU's kernels compute with them.
Status check_heads(const TextConfig& config, KvType kv, bool gpu);

// On the CPU: keeps the weights as they are in the file, in memory, and computes in double precision. On a
// GPU: the weights go there in pieces, and the heap stays small. `file` must outlive the backend, which may
// go on reading from it.
Task<Result<std::unique_ptr<Backend>>> load_backend(Gguf& file, LoadOptions options = {});

// The graph's inputs, by TextInput, but for the per-layer rows.
template <class T>
std::vector<std::vector<T>> text_inputs(Batch batch, u32 position) {
  std::vector<std::vector<T>> inputs(kTextInputs);
  for (u32 t = 0; t < batch.size(); ++t) {
    const bool soft = batch.ids[t] == Batch::kSoft;
    inputs[kTokenIds].push_back(static_cast<T>(soft ? 0 : batch.ids[t]));
    inputs[kPositions].push_back(static_cast<T>(position + t));
    if (batch.soft.empty()) continue;
    inputs[kIsSoft].push_back(soft ? 1 : 0);
    inputs[kLast].push_back(static_cast<T>(batch.last.empty() ? position + t : batch.last[t]));
  }
  inputs[kSoftRows].assign(batch.soft.begin(), batch.soft.end());
  return inputs;
}

// From a row of op::TopK.
template <class T>
Candidates candidates_of(std::span<const T> row) {
  Candidates out;
  const std::size_t k = row.size() / 2;
  for (std::size_t i = 0; i < k; ++i)
    out.best.push_back({static_cast<u32>(row[i]), static_cast<f32>(row[k + i])});
  out.log_total = static_cast<f64>(row[2 * k]);
  return out;
}

// The graph's kDraw.
inline std::vector<f32> draw_input(const Draw& draw) {
  std::vector<f32> out{draw.temperature, static_cast<f32>(std::min(draw.top_k, 2 * op::Sample::kMost)),
                       draw.top_p,       draw.min_p,
                       draw.uniform,     static_cast<f32>(draw.suppressed.size())};
  for (const u32 id : draw.suppressed) out.push_back(static_cast<f32>(id));
  CHECK(out.size() <= op::Sample::kSuppressed + op::Sample::kMost);
  out.resize(op::Sample::kSuppressed + op::Sample::kMost);
  return out;
}

// What load_backend() chooses from.
Task<Result<std::unique_ptr<Backend>>> load_cpu_backend(Gguf& file, TextModel model,
                                                        const LoadOptions& options);
Task<Result<std::unique_ptr<Backend>>> load_gpu_backend(Gguf& file, TextModel model,
                                                        const LoadOptions& options);

}  // namespace bezel

// A loaded text model on some device. Sessions share it; each has a KV cache of its own.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "gpu/device.h"
#include "model/text_graph.h"
#include "model/text_model.h"

namespace bezel {

// How a cache stores a number; the value is its bytes.
enum class KvType : u32 { kF16 = 2, kF32 = 4, kF64 = 8 };

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

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const TextModel& model() const = 0;
  virtual u32 batch() const = 0;    // the most tokens of one forward()
  virtual u32 outputs() const = 0;  // the most rows of logits of one forward()
  virtual Result<std::unique_ptr<KvCache>> make_cache(u32 context) = 0;

  // Runs `ids` at positions `position`, position + 1, ... and appends to `logits` those of the last `outputs`
  // tokens, row by row. Ids are below the vocabulary's size, and the tokens fit the cache: the caller has
  // checked.
  virtual Task<Status> forward(KvCache& cache, std::span<const u32> ids, u32 position, u32 outputs,
                               std::vector<f32>& logits) = 0;
};

struct GpuOptions {
  u32 batch = 256;          // tokens of one pass, if their intermediate results fit
  u32 attention_parts = 8;  // workgroups that share the keys of one query
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
  bool bf16_rope = false;  // see round_frequencies_to_bf16()
  // Keys and values in half precision: on a GPU half the memory, and half to read; on the CPU the same
  // rounding.
  bool kv_f16 = false;
  PerLayerTable per_layer_table = PerLayerTable::kAuto;
  u64 memory_budget = 0;  // bytes that the weights may take; 0 when no limit is known
  // Where to compute; null for the CPU. It must outlive the backend and everything made from it.
  Device* device = nullptr;
  GpuOptions gpu;
};

// On the CPU: keeps the weights as they are in the file, in memory, and computes in double precision. On a
// GPU: the weights go there in pieces, and the heap stays small. `file` must outlive the backend, which may
// go on reading from it.
Task<Result<std::unique_ptr<Backend>>> load_backend(Gguf& file, LoadOptions options = {});

// What load_backend() chooses from.
Task<Result<std::unique_ptr<Backend>>> load_cpu_backend(Gguf& file, TextModel model,
                                                        const LoadOptions& options);
Task<Result<std::unique_ptr<Backend>>> load_gpu_backend(Gguf& file, TextModel model,
                                                        const LoadOptions& options);

}  // namespace bezel

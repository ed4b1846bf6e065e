#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/memory.h"
#include "model/text_graph.h"
#include "run/backend.h"
#include "run/cpu_weights.h"
#include "run/per_layer_rows.h"

namespace bezel {
namespace {

constexpr u32 kBatch = 64;
constexpr u32 kBlock = 1120;  // the largest picture
constexpr std::size_t kMostGraphs = 256;

class CpuCache final : public KvCache {
 public:
  CpuCache(u32 context, u32 window, std::vector<KvRing> rings)
      : context_(context), window_(window), rings_(std::move(rings)) {
    for (const KvRing& ring : rings_) {
      for (int i = 0; i < 2; ++i) states.emplace_back(std::size_t{ring.slots} * ring.cols);
    }
  }
  u32 context() const override { return context_; }
  bool holds(u32 position, u32 written) const override {
    return rings_hold(rings_, window_, position, written);
  }
  const std::vector<KvRing>& rings() const override { return rings_; }
  KvType type() const override { return KvType::kF64; }
  Task<Status> read(u32 state, u32 slot, MutableBytes out) override {
    std::ranges::copy(part(state, slot, out.size()), out.begin());
    co_return Status{};
  }
  void write(u32 state, u32 slot, Bytes bytes) override {
    std::ranges::copy(bytes, part(state, slot, bytes.size()).begin());
  }
  u64 bytes() const override {
    u64 total = 0;
    for (const auto& state : states) total += state.size() * sizeof(f64);
    return total;
  }

  std::vector<std::vector<f64>> states;

 private:
  MutableBytes part(u32 state, u32 slot, std::size_t bytes) {
    const std::size_t offset = std::size_t{slot} * rings_[state / 2].cols * sizeof(f64);
    return std::as_writable_bytes(std::span(states[state])).subspan(offset, bytes);
  }

  u32 context_, window_;
  std::vector<KvRing> rings_;
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(TextModel model, const LoadOptions& options)
      : model_(std::move(model)), reference_(weights_, options.kv), pause_(options.pause) {}

  Task<Status> load(Gguf& file, const LoadOptions& options) {
    std::vector<u64> bytes;
    for (const TensorInfo& info : model_.tensors) bytes.push_back(info.bytes);
    LoadOptions within = options;
    if (options.memory_budget == 0 || options.memory_budget > memory_limit())
      within.memory_budget = memory_limit();
    CO_TRY(choose_per_layer_table(model_, bytes, within));
    CO_TRY(co_await weights_.load(file, model_.tensors, [&](u32 i) { return model_.loads(i); }, options));
    if (model_.per_layer_rows_from_file) per_layer_rows_.emplace(file, model_);
    co_return Status{};
  }

  const TextModel& model() const override { return model_; }
  u32 batch() const override { return kBatch; }
  u32 block() const override { return model_.config.pictures_see_ahead() ? kBlock : kBatch; }
  u32 outputs() const override { return kBatch; }

  Result<std::unique_ptr<KvCache>> make_cache(u32 context) override {
    if (context == 0) return invalid("A context of 0 tokens cannot hold anything.");
    auto rings = kv_rings(model_.config, context, block());
    u64 bytes = 0;
    for (const KvRing& ring : rings) bytes += u64{ring.slots} * ring.cols * 2 * sizeof(f64);
    if (bytes > memory_limit()) {
      return fail(ErrorKind::kMemory,
                  "A context of {} tokens takes {} bytes, more than this machine's memory ({} bytes).",
                  context, bytes, memory_limit());
    }
    return std::make_unique<CpuCache>(context, model_.config.window, std::move(rings));
  }

  Task<Status> forward(KvCache& cache, Batch batch, u32 position, Wanted wanted, Outputs& out) override {
    auto& cpu = static_cast<CpuCache&>(cache);
    CHECK(batch.size() <= (batch.last.empty() ? kBatch : kBlock) && position + batch.size() <= cpu.context());
    const Graph& pass = *CO_TRY(graph(cpu, {batch.size(), wanted.rows, wanted.top, !batch.soft.empty()}));
    auto inputs = text_inputs<f64>(batch, position);
    if (per_layer_rows_) {
      const std::vector<f32> rows = CO_TRY(co_await per_layer_rows_->read(batch.ids));
      const f64 scale = per_layer_scale(model_.config);
      for (const f32 v : rows) inputs[kPerLayerRows].push_back(v * scale);
    }
    reference_.run(pass, inputs, cpu.states);
    if (const Tensor* top = pass.find("top")) {
      out.candidates = candidates_of<f64>(reference_.values(*top));
    } else if (const Tensor* logits = pass.find("logits")) {
      for (const f64 v : reference_.values(*logits)) out.logits.push_back(static_cast<f32>(v));
    }
    if (pause_) CO_TRY(co_await pause_());
    co_return Status{};
  }

 private:
  Result<const Graph*> graph(const CpuCache& cache, PassShape shape) {
    const std::pair key(cache.context(), shape);
    if (const auto known = graphs_.find(key); known != graphs_.end()) return &known->second;
    Graph built = build_text_graph(model_, cache.rings(), shape);
    const u64 bytes = Reference::bytes_of(built);
    if (bytes > memory_limit()) {
      return fail(ErrorKind::kMemory,
                  "A pass over {} tokens takes {} bytes, more than there may be ({} bytes).", shape.tokens,
                  bytes, memory_limit());
    }
    if (graphs_.size() >= kMostGraphs) graphs_.clear();  // sessions may come in any number of sizes
    return &graphs_.emplace(key, std::move(built)).first->second;
  }

  TextModel model_;
  CpuWeights weights_;
  Reference reference_;
  std::function<Task<Status>()> pause_;
  std::optional<PerLayerRows> per_layer_rows_;
  std::map<std::pair<u32, PassShape>, Graph> graphs_;  // by context
};

}  // namespace

Task<Result<std::unique_ptr<Backend>>> load_cpu_backend(Gguf& file, TextModel model,
                                                        const LoadOptions& options) {
  auto backend = std::make_unique<CpuBackend>(std::move(model), options);
  CO_TRY(co_await backend->load(file, options));
  co_return backend;
}

Status check_heads(const TextConfig& config, KvType kv, bool gpu) {
  constexpr u32 kMost = 512;  // numbers that kernels of attention have room for
  for (const LayerConfig& layer : config.layers) {
    const u32 size = layer.head_size;
    if (kv == KvType::kQ8 && size % kKvBlock != 0) {
      return fail(ErrorKind::kUnsupported,
                  "Keys and values as q8 need heads of a multiple of {} numbers; this model's have {}. "
                  "Keep them as f16.",
                  kKvBlock, size);
    }
    if (gpu && (size % 4 != 0 || size > kMost)) {
      return fail(ErrorKind::kUnsupported,
                  "On a GPU, heads have a multiple of 4 numbers and at most {}; this model's have {}. "
                  "Compute on the CPU.",
                  kMost, size);
    }
  }
  return {};
}

Task<Result<std::unique_ptr<Backend>>> load_backend(Gguf& file, LoadOptions options) {
  TextModel model = CO_TRY(co_await load_text_model(file));
  if (options.bf16_rope) round_frequencies_to_bf16(model);
  CO_TRY(check_heads(model.config, options.kv, options.device != nullptr));
  if (options.device != nullptr) co_return co_await load_gpu_backend(file, std::move(model), options);
  co_return co_await load_cpu_backend(file, std::move(model), options);
}

}  // namespace bezel

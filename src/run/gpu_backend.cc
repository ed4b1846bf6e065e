#include <algorithm>
#include <bit>
#include <map>

#include "base/check.h"
#include "graph/plan.h"
#include "model/text_graph.h"
#include "run/backend.h"
#include "run/gpu_weights.h"
#include "run/per_layer_rows.h"

namespace bezel {
namespace {

constexpr std::string_view kKeep[] = {"logits"};

class GpuCache final : public KvCache {
 public:
  GpuCache(Device& device, u32 context, u32 window, KvType type, std::vector<KvRing> rings,
           std::vector<Buffer> buffers)
      : device_(device),
        context_(context),
        window_(window),
        type_(type),
        rings_(std::move(rings)),
        buffers_(std::move(buffers)) {}
  u32 context() const override { return context_; }
  bool holds(u32 position, u32 written) const override {
    return rings_hold(rings_, window_, position, written);
  }
  u64 bytes() const override {
    u64 total = 0;
    for (const Buffer& buffer : buffers_) total += buffer.bytes();
    return total;
  }
  const std::vector<KvRing>& rings() const override { return rings_; }
  KvType type() const override { return type_; }
  Task<Status> read(u32 state, u32 slot, MutableBytes out) override {
    return device_.read(buffers_[state], offset(state, slot), out);
  }
  void write(u32 state, u32 slot, Bytes bytes) override {
    device_.write(buffers_[state], offset(state, slot), bytes);
  }
  std::span<const Buffer> buffers() const { return buffers_; }

  struct Pass {
    Graph graph;
    Plan plan;
  };
  std::map<std::pair<u32, u32>, Pass>
      passes;  // by tokens and outputs; their bind groups name this cache's buffers

 private:
  u64 offset(u32 state, u32 slot) const {
    return u64{slot} * rings_[state / 2].cols * static_cast<u32>(type_);
  }

  Device& device_;
  u32 context_, window_;
  KvType type_;
  std::vector<KvRing> rings_;
  std::vector<Buffer> buffers_;
};

class GpuBackend final : public Backend {
 public:
  GpuBackend(Device& device, TextModel model, const LoadOptions& options)
      : device_(device), model_(std::move(model)), options_(options.gpu), kv_f16_(options.kv_f16) {}

  Task<Status> load(Gguf& file, const LoadOptions& options) {
    // Before the weights, the last of which may take all that is left.
    CO_TRY(choose_batch());
    weights_ = CO_TRY(co_await load_device_weights(device_, file, model_, options));
    if (model_.per_layer_rows_from_file) per_layer_rows_.emplace(file, model_);
    co_return Status{};
  }

  const TextModel& model() const override { return model_; }
  u32 batch() const override { return batch_; }
  u32 outputs() const override { return std::min(batch_, outputs_); }

  Result<std::unique_ptr<KvCache>> make_cache(u32 context) override {
    if (context == 0) return invalid("A context of 0 tokens cannot hold anything.");
    auto rings = kv_rings(model_.config, context, batch_);
    const KvType type = kv_f16_ ? KvType::kF16 : KvType::kF32;
    std::vector<Buffer> buffers;
    for (const KvRing& ring : rings) {
      const u64 bytes = u64{ring.slots} * ring.cols * static_cast<u32>(type);
      if (bytes > device_.info().max_binding) {
        return fail(ErrorKind::kMemory,
                    "A context of {} tokens needs {} bytes in one piece, but the GPU binds at most {}.",
                    context, bytes, device_.info().max_binding);
      }
      buffers.push_back(TRY(device_.make_buffer(bytes, "keys")));
      buffers.push_back(TRY(device_.make_buffer(bytes, "values")));
    }
    return std::make_unique<GpuCache>(device_, context, model_.config.window, type, std::move(rings),
                                      std::move(buffers));
  }

  Task<Status> forward(KvCache& cache, std::span<const u32> ids, u32 position, u32 outputs,
                       std::vector<f32>& logits) override {
    auto& gpu = static_cast<GpuCache&>(cache);
    CHECK(ids.size() <= batch_ && position + ids.size() <= gpu.context());
    const bool all = outputs == ids.size();
    std::vector<f32> table_rows;  // (T, L * P)
    if (per_layer_rows_) {
      table_rows = CO_TRY(co_await per_layer_rows_->read(ids));
      for (f32& v : table_rows) v *= per_layer_scale(model_.config);
    }
    const u32 table_cols = per_layer_rows_ ? model_.per_layer_token_embd.cols : 0;
    std::span<const f32> rows = table_rows;
    // Passes come in powers of two, so that a handful of plans serves every length: 77 = 64 + 8 + 4 + 1.
    while (!ids.empty()) {
      u32 tokens = std::bit_floor(static_cast<u32>(ids.size()));
      u32 wanted = 0;
      if (all) {
        wanted = tokens;
      } else if (tokens == ids.size()) {
        wanted = outputs;
      } else if (ids.size() - tokens < outputs) {
        tokens = static_cast<u32>(std::bit_floor(ids.size() - outputs));
      }
      CO_TRY(
          co_await pass(gpu, ids.first(tokens), position, rows.first(tokens * table_cols), wanted, logits));
      ids = ids.subspan(tokens);
      rows = rows.subspan(tokens * table_cols);
      position += tokens;
    }
    co_return Status{};
  }

 private:
  // The largest power of two whose intermediate results fit one binding, and how many rows of logits do.
  Status choose_batch() {
    const u64 room = std::min(device_.info().max_binding, u64{256} << 20) / sizeof(f32);
    outputs_ =
        std::bit_floor(static_cast<u32>(std::clamp<u64>(room / 4 / model_.config.vocab, 1, options_.batch)));
    batch_ = std::bit_floor(std::max(1u, options_.batch));
    while (batch_ > 1 && arena_elements() > room) batch_ /= 2;
    arena_ = TRY(device_.make_buffer(arena_elements() * sizeof(f32), "arena"));
    return {};
  }

  // What the hungriest pass needs, wherever the per-layer table will be.
  u64 arena_elements() const {
    u64 most = 0;
    TextModel model = model_;
    const auto rings = kv_rings(model.config, model.config.context, batch_);
    for (u32 tokens = 1; tokens <= batch_; tokens *= 2) {
      for (const u32 rows : {0u, 1u, std::min(tokens, outputs())}) {
        for (const bool from_file : {false, true}) {
          if (from_file && model.config.ple == 0) continue;
          model.per_layer_rows_from_file = from_file;
          most = std::max(most, layout(build_text_graph(model, rings, tokens, rows)).elements);
        }
      }
    }
    return most;
  }

  Arena layout(const Graph& graph) const { return lay_out(graph, kKeep, options_.attention_parts); }

  Task<Status> pass(GpuCache& cache, std::span<const u32> ids, u32 position, std::span<const f32> table_rows,
                    u32 outputs, std::vector<f32>& logits) {
    const u32 tokens = static_cast<u32>(ids.size());
    auto known = cache.passes.find({tokens, outputs});
    if (known == cache.passes.end()) {
      Graph graph = build_text_graph(model_, cache.rings(), tokens, outputs);
      Plan plan = CO_TRY(Plan::build(device_, graph, layout(graph), arena_, weights_, cache.buffers(),
                                     {.kv_f16 = kv_f16_, .attention_parts = options_.attention_parts}));
      known =
          cache.passes.emplace(std::pair(tokens, outputs), GpuCache::Pass{std::move(graph), std::move(plan)})
              .first;
    }
    std::vector<std::vector<f32>> inputs(3);
    inputs[kTokenIds].assign(ids.begin(), ids.end());
    inputs[kPerLayerRows].assign(table_rows.begin(), table_rows.end());
    for (u32 t = 0; t < tokens; ++t) inputs[kPositions].push_back(static_cast<f32>(position + t));
    CO_TRY(known->second.plan.run(inputs));
    if (const Tensor* out = known->second.graph.find("logits")) {
      std::vector<f32> rows;
      CO_TRY(co_await known->second.plan.read(*out, rows));
      logits.insert(logits.end(), rows.begin(), rows.end());
    }
    co_return Status{};
  }

  Device& device_;
  TextModel model_;
  GpuOptions options_;
  bool kv_f16_;
  DeviceWeights weights_;
  std::optional<PerLayerRows> per_layer_rows_;
  Buffer arena_;
  u32 batch_ = 1, outputs_ = 1;
};

}  // namespace

Task<Result<std::unique_ptr<Backend>>> load_gpu_backend(Gguf& file, TextModel model,
                                                        const LoadOptions& options) {
  auto backend = std::make_unique<GpuBackend>(*options.device, std::move(model), options);
  CO_TRY(co_await backend->load(file, options));
  co_return backend;
}

}  // namespace bezel

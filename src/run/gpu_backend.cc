#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>

#include "base/check.h"
#include "graph/plan.h"
#include "model/text_graph.h"
#include "run/backend.h"
#include "run/gpu_weights.h"
#include "run/per_layer_rows.h"

namespace bezel {
namespace {

constexpr std::string_view kKeep[] = {"logits", "top", "chosen"};
constexpr std::size_t kMostPlans = 64;
constexpr u32 kPicture = 512;  // tokens of a pass that takes a picture of the usual size, 280, whole

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
    u32 relay_groups = 0;  // as it was built
  };
  std::map<PassShape, Pass> passes;  // their bind groups name this cache's buffers

 private:
  u64 offset(u32 state, u32 slot) const { return kv_bytes(type_, u64{slot} * rings_[state / 2].cols); }

  Device& device_;
  u32 context_, window_;
  KvType type_;
  std::vector<KvRing> rings_;
  std::vector<Buffer> buffers_;
};

class GpuStep final : public DecodeStep {
 public:
  using Failed = std::function<bool(std::span<const f32> outputs)>;
  GpuStep(Download row, const PassShape& pass_shape, u64 pass_number, Failed failed)
      : shape(pass_shape), number(pass_number), row_(std::move(row)), failed_(std::move(failed)) {}
  Task<Result<std::optional<Chosen>>> finish() override {
    std::vector<f32> row(static_cast<std::size_t>(row_.bytes() / sizeof(f32)));
    CO_TRY(co_await row_.finish(std::as_writable_bytes(std::span(row))));
    if (failed_(row)) co_return std::optional<Chosen>();
    co_return Chosen{candidates_of(std::span<const f32>(row).first(row.size() - 1)),
                     static_cast<u32>(row.back())};
  }

  PassShape shape;
  u64 number;  // of the pass, among all of the backend

 private:
  Download row_;
  Failed failed_;
};

class GpuBackend final : public Backend {
 public:
  GpuBackend(Device& device, TextModel model, const LoadOptions& options)
      : device_(device),
        model_(std::move(model)),
        options_(options.gpu),
        kv_(options.kv),
        tuning_(Tuning::parse(options.gpu.tuning, device.info())) {
    const DeviceInfo& info = device.info();
    if (options_.attention_parts == 0) options_.attention_parts = attention_parts_for(info);
    relay_shape_ = {static_cast<u32>(model_.layers.size()), model_.config.width, 0};
    for (const TensorInfo& tensor : model_.tensors) relay_shape_.bytes += tensor.bytes;
    relay_threads_ = relay_threads(info);
    // An experiment is nobody else's experience.
    const bool usual = !options_.norm_in_product && !options_.file_layout;
    if (!usual) options_.learned = {};
    if (options_.relays == Relays::kAuto) {
      const auto known = usual ? tuning_.relays(relay_shape_) : std::nullopt;
      const bool tries = !known && !info.software && info.vendor == "nvidia";
      options_.relays = tries ? Relays::kTrial : known.value_or(0) > 0 ? Relays::kOn : Relays::kOff;
      if (known) relay_threads_ = {*known};
    }
    may_relay_ = options_.relays != Relays::kOff && info.integer_dots && info.subgroups;
  }

  Task<Status> load(Gguf& file, const LoadOptions& options) {
    // Before the weights, the last of which may take all that is left.
    CO_TRY(choose_batch());
    // What decodes compiles while the weights are read.
    const auto compile = [this](const DeviceWeights& weights) {
      const PassShape shape{1, 1, 1, false, !model_.per_layer_rows_from_file};
      const Graph graph = build_text_graph(model_, kv_rings(model_.config, 1, batch_), shape);
      return Plan::prepare(device_, graph, layout(graph), arena_, weights, plan_options(relay_of(shape)));
    };
    weights_ = CO_TRY(co_await load_device_weights(device_, file, model_, options, may_relay_, compile));
    if (model_.per_layer_rows_from_file) per_layer_rows_.emplace(file, model_);
    if (may_relay_) {
      const Status chosen = co_await choose_relay();
      if (!chosen && chosen.error().kind == ErrorKind::kDeviceLost) co_return chosen;
      // No memory for a trial, or a compiler that refuses the kernel: it goes without.
      if (!chosen) relay_ = {};
      // There may be memory next time.
      if (!chosen && chosen.error().kind != ErrorKind::kMemory) learn_relays(0);
    }
    co_return Status{};
  }

  const TextModel& model() const override { return model_; }
  u32 batch() const override { return batch_; }
  u32 block() const override { return batch_; }
  u32 outputs() const override { return std::min(batch_, outputs_); }

  Result<std::unique_ptr<KvCache>> make_cache(u32 context) override {
    if (context == 0) return invalid("A context of 0 tokens cannot hold anything.");
    auto rings = kv_rings(model_.config, context, batch_);
    std::vector<Buffer> buffers;
    for (const KvRing& ring : rings) {
      const u64 bytes = kv_bytes(kv_, u64{ring.slots} * ring.cols);
      if (bytes > device_.info().max_binding) {
        return fail(ErrorKind::kMemory,
                    "A context of {} tokens needs {} bytes in one piece, but the GPU binds at most {}.",
                    context, bytes, device_.info().max_binding);
      }
      buffers.push_back(TRY(device_.make_buffer(bytes, "keys")));
      buffers.push_back(TRY(device_.make_buffer(bytes, "values")));
    }
    return std::make_unique<GpuCache>(device_, context, model_.config.window, kv_, std::move(rings),
                                      std::move(buffers));
  }

  Task<Status> forward(KvCache& cache, Batch batch, u32 position, Wanted wanted, Outputs& out) override {
    return passes(static_cast<GpuCache&>(cache), batch, position, wanted, out, nullptr);
  }

  Task<Result<PassProfile>> profile(KvCache& cache, Batch batch, u32 position, Wanted wanted,
                                    Outputs& out) override {
    PassProfile found;
    CO_TRY(co_await passes(static_cast<GpuCache&>(cache), batch, position, wanted, out, &found));
    co_return found;
  }

  const Tuning& tuning() const override { return tuning_; }
  void use(Tuning tuning) override { tuning_ = std::move(tuning); }

  Task<Result<std::vector<ProductTime>>> time_products(u32 tokens, const Tuning& trial, u32 warm,
                                                       u32 rounds) override {
    CHECK(tokens <= batch_);
    // These tokens are context enough, and rows of the per-layer table may be anything: neither changes what
    // products do. Of a prompt's many tokens nobody wants logits.
    const auto cache = CO_TRY(make_cache(tokens));
    const PassShape shape = tokens == 1 ? PassShape{1, 1, 1} : PassShape{tokens};
    const Graph graph = build_text_graph(model_, cache->rings(), shape);
    PlanOptions options = plan_options({});  // in relays products are not one by one
    options.tuning = &trial;
    Plan plan = CO_TRY(Plan::build(device_, graph, layout(graph), arena_, weights_,
                                   static_cast<const GpuCache&>(*cache).buffers(), options));
    CO_TRY(co_await device_.settle());
    const std::vector<u32> ids(tokens);
    const auto inputs = text_inputs<f32>({ids, {}, {}}, 0);
    ++pass_number_;
    for (u32 i = 0; i < warm; ++i) CO_TRY(plan.run(inputs));
    std::vector<ProductTime> out;
    for (u32 i = 0; i < rounds; ++i) {
      const auto times = CO_TRY(co_await plan.profile(inputs));
      for (const auto& [dispatch, product] : plan.products()) out.push_back({product, times[dispatch]});
    }
    co_return out;
  }

  // Rows of a table that is in the file are known only to the host.
  bool decodes_ahead() const override { return !per_layer_rows_; }

  Task<Result<std::unique_ptr<DecodeStep>>> begin(KvCache& cache, DecodeInput input) override {
    CHECK(decodes_ahead() && input.position < cache.context());
    const PassShape shape{1, 1, most_wanted(input.top), false, true};
    auto& [graph, plan, groups] = *CO_TRY(co_await pass_of(static_cast<GpuCache&>(cache), shape));
    std::vector<std::vector<f32>> inputs(kTextInputs);
    if (input.after == nullptr) {
      inputs = text_inputs<f32>({std::span(&input.token, 1), {}, {}}, input.position);
    } else {
      // The last pass left token and position where this one looks for them, unless there was another since.
      const auto& last = static_cast<const GpuStep&>(*input.after);
      if (last.number != pass_number_ || last.shape != shape) co_return std::unique_ptr<DecodeStep>();
    }
    inputs[kDraw] = draw_input(input.draw);
    ++pass_number_;
    const auto failed = [this, relays = groups > 0](std::span<const f32> row) {
      return relays_failed(row, relays);
    };
    co_return std::make_unique<GpuStep>(CO_TRY(plan.run_and_read(inputs, *graph.find("chosen"))), shape,
                                        pass_number_, failed);
  }

 private:
  // In powers of two like the passes, for the same reason.
  u32 most_wanted(u32 top) const { return std::min(std::bit_ceil(top), model_.config.vocab); }

  // Notes what ran in `profile`, if there is one.
  Task<Status> passes(GpuCache& gpu, Batch batch, u32 position, Wanted wanted, Outputs& out,
                      PassProfile* profile) {
    CHECK(batch.size() <= batch_ && position + batch.size() <= gpu.context());
    const bool all = wanted.rows == batch.size();
    if (wanted.top > 0) wanted.top = most_wanted(wanted.top);
    std::vector<f32> table_rows;  // (T, L * P)
    if (per_layer_rows_) {
      table_rows = CO_TRY(co_await per_layer_rows_->read(batch.ids));
      for (f32& v : table_rows) v *= per_layer_scale(model_.config);
    }
    const u32 table_cols = per_layer_rows_ ? model_.per_layer_token_embd.cols : 0;
    std::span<const f32> rows = table_rows;
    // Passes come in powers of two, so that a handful of plans serves every length: 77 = 64 + 8 + 4 + 1. What
    // sees ahead is not cut.
    while (batch.size() > 0) {
      const u32 left = batch.size();
      u32 tokens = batch.last.empty() ? std::bit_floor(left) : left;
      Wanted now;
      if (all) {
        now = {tokens, wanted.top};
      } else if (tokens == left) {
        now = wanted;
      } else if (left - tokens < wanted.rows) {
        tokens = std::bit_floor(left - wanted.rows);
      }
      CO_TRY(co_await pass(gpu, batch.part(0, tokens), position, rows.first(tokens * table_cols), now, out,
                           profile));
      if (tokens == left) break;
      batch = batch.part(tokens, left - tokens);
      rows = rows.subspan(tokens * table_cols);
      position += tokens;
    }
    co_return Status{};
  }

  // Builds the plan where there is none yet.
  Task<Result<GpuCache::Pass*>> pass_of(GpuCache& cache, PassShape shape) {
    const RelayOptions relay = relay_of(shape);
    auto known = cache.passes.find(shape);
    if (known != cache.passes.end() && known->second.relay_groups != relay.groups) {
      cache.passes.erase(known);
      known = cache.passes.end();
    }
    if (known == cache.passes.end()) {
      if (cache.passes.size() >= kMostPlans) cache.passes.clear();  // pictures come in many sizes
      Graph graph = build_text_graph(model_, cache.rings(), shape);
      Plan plan = CO_TRY(
          Plan::build(device_, graph, layout(graph), arena_, weights_, cache.buffers(), plan_options(relay)));
      CO_TRY(co_await device_.settle());  // a kernel that does not compile says so here
      known =
          cache.passes.emplace(shape, GpuCache::Pass{std::move(graph), std::move(plan), relay.groups}).first;
    }
    co_return &known->second;
  }

  // The largest power of two whose intermediate results fit one binding, and how many rows of logits do.
  Status choose_batch() {
    const u64 room = std::min(device_.info().max_binding, u64{256} << 20) / sizeof(f32);
    outputs_ =
        std::bit_floor(static_cast<u32>(std::clamp<u64>(room / 4 / model_.config.vocab, 1, options_.batch)));
    // Large tiles need many tokens to keep a GPU busy; but who asked for a size gets that.
    constexpr u32 kBusy = 1024;
    const bool asked = options_.batch != GpuOptions{}.batch;
    const u32 usual = asked || device_.info().software ? options_.batch : std::max(options_.batch, kBusy);
    // A picture whose tokens see each other is one pass.
    const u32 large = model_.config.pictures_see_ahead() ? std::max(usual, kPicture) : usual;
    const u32 wish = std::min(large, model_.config.context);  // what keys and values are kept for
    batch_ = std::bit_floor(std::max(1u, wish));
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
      std::vector<PassShape> shapes{{tokens, 0, 0, true},
                                    {tokens, 1, kMostCandidates, true},
                                    {tokens, std::min(tokens, outputs()), 0, true}};
      if (tokens == 1) shapes.push_back({1, 1, kMostCandidates, false, true});
      for (const PassShape& shape : shapes) {
        for (const bool from_file : {false, true}) {
          if (from_file && model.config.ple == 0) continue;
          model.per_layer_rows_from_file = from_file;
          most = std::max(most, layout(build_text_graph(model, rings, shape)).elements);
        }
      }
    }
    return most;
  }

  // Keys and values that a relay did not compute would go unnoticed in a pass of which nothing is read.
  RelayOptions relay_of(const PassShape& shape) const { return shape.outputs > 0 ? relay_ : RelayOptions{}; }
  PlanOptions plan_options(const RelayOptions& relay) const {
    return {.kv = kv_,
            .attention_parts = options_.attention_parts,
            .norm_in_product = options_.norm_in_product,
            .tuning = &tuning_,
            .relay = relay};
  }
  Arena layout(const Graph& graph) const {
    return lay_out(graph, kKeep, options_.attention_parts, may_relay_);
  }

  // One token at position 0 of a cache, again and again.
  struct Trial {
    RelayOptions relay;
    Plan plan;
    std::vector<f32> logits = {};
    f64 seconds = std::numeric_limits<f64>::infinity();  // of one pass, the least
  };
  Task<Status> run_trial(Trial& trial, const Graph& graph, u32 passes) {
    const u32 token = 0;
    auto inputs = text_inputs<f32>({std::span(&token, 1), {}, {}}, 0);
    if (per_layer_rows_) inputs[kPerLayerRows].resize(model_.per_layer_token_embd.cols);
    const auto begin = std::chrono::steady_clock::now();
    for (u32 i = 0; i < passes; ++i) CO_TRY(trial.plan.run(inputs));
    CO_TRY(co_await trial.plan.read(*graph.find("logits"), trial.logits));
    const std::chrono::duration<f64> took = std::chrono::steady_clock::now() - begin;
    trial.seconds = std::min(trial.seconds, took.count() / passes);
    co_return Status{};
  }

  // What the tuning knows already is no news.
  void learn_relays(u32 threads) {
    if (tuning_.relays(relay_shape_) == threads) return;
    tuning_.set_relays(relay_shape_, threads);
    if (!options_.learned) return;
    Tuning news;
    news.set_relays(relay_shape_, threads);
    options_.learned(news);
  }

  // With relays where they give what products one by one give and, unless they were asked for, that takes
  // longer.
  Task<Status> choose_relay() {
    constexpr u32 kContext = 64, kPasses = 8, kRounds = 4;
    constexpr f64 kHopeless = 2;
    const bool asked = options_.relays == Relays::kOn;
    const auto cache = CO_TRY(make_cache(kContext));
    const Graph graph = build_text_graph(model_, cache->rings(), {1, 1});
    const auto trial_of = [&](const RelayOptions& relay) -> Result<Trial> {
      const auto buffers = static_cast<const GpuCache&>(*cache).buffers();
      return Trial{relay, TRY(Plan::build(device_, graph, layout(graph), arena_, weights_, buffers,
                                          plan_options(relay)))};
    };
    std::vector<Trial> trials;
    for (const u32 threads : relay_threads_) {
      const RelayOptions relay{.groups = 1, .threads = threads};
      CO_TRY(Plan::prepare(device_, graph, layout(graph), arena_, weights_, plan_options(relay)));
    }
    trials.push_back(CO_TRY(trial_of({})));
    for (const u32 threads : relay_threads_) {
      RelayOptions relay{.threads = threads};
      relay.groups = CO_TRY(
          co_await Plan::relay_groups(device_, graph, layout(graph), arena_, weights_, plan_options(relay)));
      if (relay.groups > 0) trials.push_back(CO_TRY(trial_of(relay)));
    }
    CO_TRY(co_await device_.settle());
    ++pass_number_;
    for (Trial& trial : trials) CO_TRY(co_await run_trial(trial, graph, 1));
    for (u32 round = 0; round < kRounds && !asked; ++round) {
      for (Trial& trial : trials) CO_TRY(co_await run_trial(trial, graph, round == 0 ? 1 : kPasses));
      // Where atomics are slow it takes many times as long: who loads need not wait for that.
      std::erase_if(trials, [&](const Trial& t) { return t.seconds > kHopeless * trials[0].seconds; });
    }
    f64 least = asked ? std::numeric_limits<f64>::infinity() : trials[0].seconds;
    for (const Trial& trial : std::span(trials).subspan(1)) {
      if (trial.seconds >= least || !alike(trials[0].logits, trial.logits)) continue;
      least = trial.seconds;
      relay_ = trial.relay;
    }
    // Who asked for them has not heard that they are faster, but perhaps that they are wrong. Weights that
    // give no numbers tell nothing about the device.
    if (are_numbers(trials[0].logits) && (!asked || relay_.groups == 0)) learn_relays(relay_.threads);
    co_return Status{};
  }

  static bool are_numbers(std::span<const f32> outputs) {
    return std::ranges::none_of(outputs, [](f32 v) { return std::isnan(v); });
  }

  // But for rounding.
  static bool alike(std::span<const f32> a, std::span<const f32> b) {
    constexpr f32 kTolerance = 1e-3f;
    f32 most = 0;
    for (const f32 v : a) most = std::max(most, std::abs(v));
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!(std::abs(a[i] - b[i]) <= kTolerance * most)) return false;
    return true;
  }

  Task<Status> pass(GpuCache& cache, Batch batch, u32 position, std::span<const f32> table_rows,
                    Wanted wanted, Outputs& out, PassProfile* profile) {
    const PassShape shape{batch.size(), wanted.rows, wanted.top, !batch.soft.empty()};
    auto& [graph, plan, groups] = *CO_TRY(co_await pass_of(cache, shape));
    auto inputs = text_inputs<f32>(batch, position);
    inputs[kPerLayerRows].assign(table_rows.begin(), table_rows.end());
    ++pass_number_;
    std::vector<u64> times;
    if (profile != nullptr && device_.info().timestamps) {
      times = CO_TRY(co_await plan.profile(inputs));
    } else {
      CO_TRY(plan.run(inputs));
    }
    const Tensor *top = graph.find("top"), *logits = graph.find("logits");
    std::vector<f32> rows;
    if (logits != nullptr) CO_TRY(co_await plan.read(top != nullptr ? *top : *logits, rows));
    // Of logits, one that is no number would have spoilt them all. Once more writes the same keys and values.
    if (logits != nullptr &&
        relays_failed(std::span(rows).first(top != nullptr ? rows.size() : 1), groups > 0))
      co_return co_await this->pass(cache, batch, position, table_rows, wanted, out, profile);
    if (top != nullptr) {
      out.candidates = candidates_of<f32>(rows);
    } else {
      out.logits.insert(out.logits.end(), rows.begin(), rows.end());
    }
    if (profile != nullptr) {
      profile->labels.insert(profile->labels.end(), plan.labels().begin(), plan.labels().end());
      profile->nanoseconds.insert(profile->nanoseconds.end(), times.begin(), times.end());
    }
    co_return Status{};
  }

  // Workgroups of a relay that gave up waiting for each other leave what is no number. The device is not
  // asked for that again, whoever finds out first: a pass that began with relays may end after another's did.
  bool relays_failed(std::span<const f32> outputs, bool relays) {
    if (!relays && !relays_doubted_) return false;
    const bool numbers = are_numbers(outputs);
    // The next pass is the same without them. If that gives no numbers either, it was not their fault.
    if (std::exchange(relays_doubted_, false) && numbers) learn_relays(0);
    if (numbers || !relays) return false;
    relay_ = {};
    relays_doubted_ = true;
    return true;
  }

  Device& device_;
  TextModel model_;
  GpuOptions options_;
  KvType kv_;
  Tuning tuning_;
  DeviceWeights weights_;
  std::optional<PerLayerRows> per_layer_rows_;
  Buffer arena_;
  u32 batch_ = 1, outputs_ = 1;
  bool may_relay_ = false;  // weights and arena are laid out for relays
  RelayShape relay_shape_;
  std::vector<u32> relay_threads_;  // to try
  RelayOptions relay_;
  bool relays_doubted_ = false;  // they were given up for what is no number
  u64 pass_number_ = 0;          // of the last that used the arena
};

}  // namespace

Task<Result<std::unique_ptr<Backend>>> load_gpu_backend(Gguf& file, TextModel model,
                                                        const LoadOptions& options) {
  auto backend = std::make_unique<GpuBackend>(*options.device, std::move(model), options);
  CO_TRY(co_await backend->load(file, options));
  co_return backend;
}

}  // namespace bezel

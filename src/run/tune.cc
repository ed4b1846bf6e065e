#include "run/tune.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "graph/fuse.h"

namespace bezel {
namespace {

// A variant must take less than this share of the table's time: times vary by a few percent.
constexpr f64 kClearly = 0.95;
// Passes before the first that counts: a GPU that has just been idle is slow.
constexpr u32 kWarm = 10;

using Times = std::map<ProductShape, f64>;  // nanoseconds, the medians

// Of products with many tokens, or of those with a vector, which some of a prompt are too.
Times medians(const std::vector<ProductTime>& all, bool tiles) {
  std::map<ProductShape, std::vector<u64>> by_shape;
  for (const ProductTime& time : all) {
    if ((time.shape.tokens > 0) == tiles) by_shape[time.shape].push_back(time.nanoseconds);
  }
  Times out;
  for (auto& [shape, times] : by_shape) {
    std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
    out[shape] = static_cast<f64>(times[times.size() / 2]);
  }
  return out;
}

// One kind of pass, and how its products can be computed.
struct Trial {
  u32 tokens = 0, warm = 0, rounds = 0;
  f64 seconds = 0;
  std::vector<KernelVariant> variants;
};

Task<Status> try_all(Backend& backend, const Trial& trial, const std::function<bool()>& go_on,
                     TuneReport& report) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<f64>(trial.seconds);
  if (go_on && !go_on()) co_return fail(ErrorKind::kCancelled, "Tuning was stopped.");
  const auto first = CO_TRY(co_await backend.time_products(trial.tokens, {}, trial.warm, trial.rounds));
  const bool tiles = trial.tokens > 1;
  Times table = medians(first, tiles);
  std::map<ProductShape, std::pair<f64, const KernelVariant*>> best;
  u32 tried = 0;
  for (const KernelVariant& variant : trial.variants) {
    if (go_on && !go_on()) co_return fail(ErrorKind::kCancelled, "Tuning was stopped.");
    if (tried > 0 && Clock::now() >= end) break;
    ++tried;
    Tuning with;
    for (const auto& [shape, time] : table) with.set(shape, variant);
    for (const auto& [shape, time] :
         medians(CO_TRY(co_await backend.time_products(trial.tokens, with, 1, trial.rounds)), tiles)) {
      const auto [known, is_new] = best.try_emplace(shape, time, &variant);
      if (!is_new && time < known->second.first) known->second = {time, &variant};
    }
  }
  // Once more: clocks may have risen since, and that is no variant's merit.
  for (const auto& [shape, time] :
       medians(CO_TRY(co_await backend.time_products(trial.tokens, {}, 1, trial.rounds)), tiles))
    table[shape] = std::min(table[shape], time);

  report.variants += static_cast<u32>(trial.variants.size());
  report.tried += tried;
  for (const auto& [shape, time] : table) {
    TunedProduct& product = report.products.emplace_back(shape);
    const auto count = std::ranges::count(first, shape, &ProductTime::shape);
    product.dispatches = static_cast<u32>(count) / trial.rounds;
    product.before = product.after = time * 1e-3;
    report.tuning.forget(shape);
    const auto found = best.find(shape);
    if (found == best.end() || found->second.first >= kClearly * time) continue;
    product.variant = found->second.second->name;
    product.after = found->second.first * 1e-3;
    report.tuning.set(shape, *found->second.second);
  }
  co_return Status{};
}

}  // namespace

Tuning TuneReport::added_to(Tuning kept) const {
  for (const TunedProduct& product : products) {
    const KernelVariant* found = tuning.find(product.shape);
    kept.forget(product.shape);
    if (found != nullptr) kept.set(product.shape, *found);
  }
  return kept;
}

Task<Result<TuneReport>> tune(Backend& backend, const DeviceInfo& info, TuneOptions options) {
  constexpr u32 kMostRounds = 1000;
  if (options.rounds == 0 || options.rounds > kMostRounds)
    co_return invalid("{} rounds asked for; 1 to {} can be had.", options.rounds, kMostRounds);
  if (!info.timestamps)
    co_return fail(ErrorKind::kUnsupported, "The GPU {} has no timestamps: kernels cannot be timed.",
                   info.name);
  if (info.software && !options.software)
    co_return fail(ErrorKind::kUnsupported,
                   "The GPU {} is software: what is fastest there changes with its load.", info.name);
  TuneReport report;
  report.tuning = backend.tuning();
  const Trial decoding{1, info.software ? 0 : kWarm, options.rounds, options.seconds, vector_variants(info)};
  CO_TRY(co_await try_all(backend, decoding, options.go_on, report));
  backend.use(report.tuning);
  if (backend.batch() <= kVectorTokens) co_return report;
  // A pass of many tokens takes long, and its times vary less.
  const Trial prompts{backend.batch(), info.software ? 0u : 1u, (options.rounds + 1) / 2, options.seconds,
                      tile_variants(info)};
  const Status tried = co_await try_all(backend, prompts, options.go_on, report);
  // Its keys and values may find no room beside those of sessions: then what decodes is tuned at least.
  if (!tried && tried.error().kind != ErrorKind::kMemory) co_return std::unexpected(tried.error());
  backend.use(report.tuning);
  co_return report;
}

}  // namespace bezel

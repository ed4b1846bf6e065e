#include "run/tune.h"

#include <algorithm>
#include <chrono>
#include <map>

namespace bezel {
namespace {

// A variant must take less than this share of the table's time: times vary by a few percent.
constexpr f64 kClearly = 0.95;
// Passes before the first that counts: a GPU that has just been idle is slow.
constexpr u32 kWarm = 10;

using Times = std::map<ProductShape, f64>;  // nanoseconds, the medians

Times medians(const std::vector<ProductTime>& all) {
  std::map<ProductShape, std::vector<u64>> by_shape;
  for (const ProductTime& time : all) by_shape[time.shape].push_back(time.nanoseconds);
  Times out;
  for (auto& [shape, times] : by_shape) {
    std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
    out[shape] = static_cast<f64>(times[times.size() / 2]);
  }
  return out;
}

// One kind of pass: its products, each with the variant that was best.
struct Trial {
  u32 tokens = 0, warm = 0, rounds = 0;
  f64 seconds = 0;
  std::vector<KernelVariant> variants;
};

Task<Status> try_all(Backend& backend, const Trial& trial, const std::function<bool()>& go_on,
                     TuneReport& report) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<f64>(trial.seconds);
  const auto first = CO_TRY(co_await backend.time_products(trial.tokens, {}, trial.warm, trial.rounds));
  Times table = medians(first);
  std::map<ProductShape, std::pair<f64, const KernelVariant*>> best;
  u32 tried = 0;
  for (const KernelVariant& variant : trial.variants) {
    if (go_on && !go_on()) co_return fail(ErrorKind::kCancelled, "Tuning was stopped.");
    if (tried > 0 && Clock::now() >= end) break;
    ++tried;
    Tuning with;
    for (const auto& [shape, time] : table) with.set(shape, variant);
    for (const auto& [shape, time] :
         medians(CO_TRY(co_await backend.time_products(trial.tokens, with, 1, trial.rounds)))) {
      const auto [known, is_new] = best.try_emplace(shape, time, &variant);
      if (!is_new && time < known->second.first) known->second = {time, &variant};
    }
  }
  // Once more: clocks may have risen since, and that is no variant's merit.
  for (const auto& [shape, time] :
       medians(CO_TRY(co_await backend.time_products(trial.tokens, {}, 1, trial.rounds))))
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
  // A pass of many tokens takes long, and its times vary less.
  const u32 few = (options.rounds + 1) / 2;
  for (const Trial& trial :
       {Trial{1, info.software ? 0 : kWarm, options.rounds, options.seconds, vector_variants(info)},
        Trial{backend.batch(), info.software ? 0u : 1u, few, options.seconds, tile_variants(info)}})
    CO_TRY(co_await try_all(backend, trial, options.go_on, report));
  backend.use(report.tuning);
  co_return report;
}

}  // namespace bezel

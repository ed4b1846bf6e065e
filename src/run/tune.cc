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
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<f64>(options.seconds);
  const auto variants = vector_variants(info);
  TuneReport report;
  report.variants = static_cast<u32>(variants.size());

  const auto first = CO_TRY(co_await backend.time_products({}, info.software ? 0 : kWarm, options.rounds));
  Times table = medians(first);
  std::map<ProductShape, std::pair<f64, const VectorVariant*>> best;
  for (const VectorVariant& variant : variants) {
    if (options.go_on && !options.go_on()) co_return fail(ErrorKind::kCancelled, "Tuning was stopped.");
    if (report.tried > 0 && Clock::now() >= end) break;
    ++report.tried;
    for (const auto& [shape, time] :
         medians(CO_TRY(co_await backend.time_products(variant.options, 1, options.rounds)))) {
      const auto [known, is_new] = best.try_emplace(shape, time, &variant);
      if (!is_new && time < known->second.first) known->second = {time, &variant};
    }
  }
  // Once more: clocks may have risen since, and that is no variant's merit.
  for (const auto& [shape, time] : medians(CO_TRY(co_await backend.time_products({}, 1, options.rounds))))
    table[shape] = std::min(table[shape], time);

  report.tuning = backend.tuning();
  for (const auto& [shape, time] : table) {
    TunedProduct& product = report.products.emplace_back(shape);
    const auto count = std::ranges::count(first, shape, &ProductTime::shape);
    product.dispatches = static_cast<u32>(count) / options.rounds;
    product.before = product.after = time * 1e-3;
    report.tuning.forget(shape);
    const auto found = best.find(shape);
    if (found == best.end() || found->second.first >= kClearly * time) continue;
    product.variant = found->second.second->name;
    product.after = found->second.first * 1e-3;
    report.tuning.set(shape, *found->second.second);
  }
  backend.use(report.tuning);
  co_return report;
}

}  // namespace bezel

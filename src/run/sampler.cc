#include "run/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/portable_math.h"

// Fused multiply-add exists on some platforms only and rounds differently.
#pragma clang fp contract(off)

namespace bezel {
namespace {

bool better(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

// How far a logit lies below the best one; infinities of the same sign are equal.
f64 gap(f32 logit, f32 best) { return logit == best ? 0 : static_cast<f64>(logit) - static_cast<f64>(best); }

f32 best_logit(std::span<const Candidate> pool) {
  f32 best = -std::numeric_limits<f32>::infinity();
  for (const Candidate& candidate : pool) best = std::max(best, candidate.logit);
  return best;
}

// The sum of e^(logit - best).
f64 relative_total(std::span<const Candidate> pool, f32 best) {
  f64 total = 0;
  for (const Candidate& candidate : pool) total += portable_exp(gap(candidate.logit, best));
  return total;
}

f32 log_probability(f32 logit, f64 log_total) {
  if (std::isinf(log_total)) return logit == log_total ? 0 : -std::numeric_limits<f32>::infinity();
  return static_cast<f32>(static_cast<f64>(logit) - log_total);
}

Status check_options(const SamplerOptions& options) {
  const std::pair<const char*, f32> numbers[] = {{"temperature", options.temperature},
                                                 {"top_p", options.top_p},
                                                 {"min_p", options.min_p},
                                                 {"repetition_penalty", options.repetition_penalty},
                                                 {"presence_penalty", options.presence_penalty},
                                                 {"frequency_penalty", options.frequency_penalty}};
  for (const auto& [name, value] : numbers) {
    if (!std::isfinite(value))
      return invalid("The sampling option {} is {}; it must be a finite number.", name, value);
  }
  if (options.repetition_penalty <= 0) {
    return invalid("The sampling option repetition_penalty is {}; it must be more than 0.",
                   options.repetition_penalty);
  }
  for (const auto& [id, bias] : options.logit_bias) {
    if (std::isnan(bias)) return invalid("The logit bias of token {} is not a number.", id);
  }
  return {};
}

}  // namespace

u32 best_enough(const SamplerOptions& options) {
  const bool adjusts = !options.logit_bias.empty() || options.repetition_penalty != 1 ||
                       options.presence_penalty != 0 || options.frequency_penalty != 0;
  const u64 chosen_from = options.temperature <= 0 ? 1 : options.top_k;
  if (adjusts || chosen_from == 0) return 0;
  const u64 needed = std::max<u64>(chosen_from + options.suppressed.size(), options.logprobs.value_or(0));
  return needed <= kMostCandidates ? static_cast<u32>(needed) : 0;
}

Sampler::Sampler(SamplerOptions options)
    : options_(std::move(options)), valid_(check_options(options_)), random_(options_.seed) {}

Result<Sample> Sampler::sample(std::span<const f32> logits) {
  for (const auto& [id, bias] : options_.logit_bias) {
    if (id >= logits.size()) {
      return invalid("The logit bias names token {}, but the vocabulary has {} tokens.", id, logits.size());
    }
  }
  pool_.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) pool_[i] = {static_cast<u32>(i), logits[i]};
  return sample_pool(std::nullopt);
}

Result<Sample> Sampler::sample(std::span<const Candidate> candidates, std::optional<f64> log_total) {
  pool_.assign(candidates.begin(), candidates.end());
  std::ranges::sort(pool_, {}, &Candidate::id);
  const auto twin = std::ranges::adjacent_find(pool_, {}, &Candidate::id);
  if (twin != pool_.end()) return invalid("Token {} is twice among the candidates.", twin->id);
  return sample_pool(log_total);
}

// pool_ is ordered by id here, which makes look-up quick and sums the same on every platform.
Result<Sample> Sampler::sample_pool(std::optional<f64> log_total) {
  TRY(Status(valid_));
  for (const Candidate& candidate : pool_) {
    if (std::isnan(candidate.logit)) {
      return invalid("The logit of token {} is not a number; the model's weights may be damaged.",
                     candidate.id);
    }
  }
  Sample result;
  if (options_.logprobs) {
    if (!log_total) {
      const f32 best = best_logit(pool_);
      log_total = std::isinf(best) ? best : best + portable_log(relative_total(pool_, best));
    }
    std::vector<Candidate> top(std::min<std::size_t>(*options_.logprobs, pool_.size()));
    std::ranges::partial_sort_copy(pool_, top, better);
    for (const Candidate& c : top) result.top.push_back({c.id, log_probability(c.logit, *log_total)});
  }
  adjust();
  result.token = TRY(choose());
  if (options_.logprobs) result.logprob = log_probability(original_logit(result.token), *log_total);
  return result;
}

Draw Sampler::foresee(u32 skip) const {
  Random random = random_;  // draw() takes one number for each sample
  for (u32 i = 0; i < skip; ++i) random.uniform();
  return {.temperature = options_.temperature,
          .top_k = options_.top_k,
          .top_p = options_.top_p,
          .min_p = options_.min_p,
          .uniform = static_cast<f32>(random.uniform()),
          .suppressed = options_.suppressed};
}

f32 Sampler::original_logit(u32 id) const {
  const auto changed = std::ranges::find(unadjusted_, id, &Candidate::id);
  return changed != unadjusted_.end() ? changed->logit : std::ranges::find(pool_, id, &Candidate::id)->logit;
}

Candidate* Sampler::find(u32 id) {
  const auto found = std::ranges::lower_bound(pool_, id, {}, &Candidate::id);
  return found != pool_.end() && found->id == id ? &*found : nullptr;
}

f32 Sampler::penalised(f32 logit, u32 count) const {
  logit = logit <= 0 ? logit * options_.repetition_penalty : logit / options_.repetition_penalty;
  return logit - (static_cast<f32>(count) * options_.frequency_penalty + options_.presence_penalty);
}

// Applies bias, suppression and penalties, and takes impossible tokens out.
void Sampler::adjust() {
  unadjusted_.clear();
  constexpr f32 kNever = -std::numeric_limits<f32>::infinity();
  const auto change = [this](Candidate& candidate, f32 logit) {
    unadjusted_.push_back(candidate);                      // the first entry of a token is its original
    candidate.logit = std::isnan(logit) ? kNever : logit;  // +inf and -inf: what is forbidden stays so
  };
  for (const auto& [id, bias] : options_.logit_bias) {
    Candidate* candidate = find(id);
    if (candidate != nullptr) change(*candidate, candidate->logit + bias);
  }
  const bool penalties =
      options_.repetition_penalty != 1 || options_.presence_penalty != 0 || options_.frequency_penalty != 0;
  if (penalties) {
    for (const auto& [id, count] : counts_) {
      Candidate* candidate = find(id);
      if (candidate != nullptr) change(*candidate, penalised(candidate->logit, count));
    }
  }
  for (const u32 id : options_.suppressed) {
    Candidate* candidate = find(id);
    if (candidate != nullptr) candidate->logit = kNever;
  }
  std::erase_if(pool_, [](const Candidate& candidate) { return candidate.logit == kNever; });
}

Result<u32> Sampler::choose() {
  if (pool_.empty()) return invalid("No token can be chosen: all of them are impossible or suppressed.");
  if (options_.temperature <= 0 || options_.top_k == 1) return std::ranges::min_element(pool_, better)->id;
  sorted_ = 0;
  // In order also where all of them stay, so that candidates of just this number are summed like a
  // vocabulary.
  if (options_.top_k > 0 && options_.top_k <= pool_.size()) {
    sort_prefix(options_.top_k);
    pool_.resize(options_.top_k);
  }
  const f32 best = best_logit(pool_);
  std::size_t count = top_p_count(best);
  count = min_p_count(best, count);
  return draw(best, count);
}

// Puts at least the best `count` in order. Grows in large steps, so that walking down the order costs little
// even where no filter limits the candidates.
void Sampler::sort_prefix(std::size_t count) {
  if (count <= sorted_) return;
  count = std::min(pool_.size(), std::max({count, sorted_ * 4, std::size_t{64}}));
  const auto begin = pool_.begin() + static_cast<std::ptrdiff_t>(sorted_);
  const auto end = pool_.begin() + static_cast<std::ptrdiff_t>(count);
  if (count - sorted_ <= 1024) {
    std::partial_sort(begin, end, pool_.end(), better);
  } else {  // the heap of partial_sort is slow when it is large
    std::nth_element(begin, end, pool_.end(), better);
    std::sort(begin, end, better);
  }
  sorted_ = count;
}

// The shortest run of the best tokens whose probabilities reach top_p.
std::size_t Sampler::top_p_count(f32 best) {
  if (options_.top_p >= 1) return pool_.size();
  const f64 wanted = static_cast<f64>(options_.top_p) * relative_total(pool_, best);
  f64 reached = 0;
  for (std::size_t i = 0; i < pool_.size(); ++i) {
    sort_prefix(i + 1);
    reached += portable_exp(gap(pool_[i].logit, best));
    if (reached >= wanted) return i + 1;
  }
  return pool_.size();
}

// Of these, the ones at least min_p times as likely as the best.
std::size_t Sampler::min_p_count(f32 best, std::size_t count) {
  if (options_.min_p <= 0) return count;
  const f64 least = portable_log(static_cast<f64>(options_.min_p));
  for (std::size_t i = 1; i < count; ++i) {
    sort_prefix(i + 1);
    if (gap(pool_[i].logit, best) < least) return i;
  }
  return count;
}

u32 Sampler::draw(f32 best, std::size_t count) {
  const f64 temperature = options_.temperature;
  const auto weight = [&](const Candidate& c) { return portable_exp(gap(c.logit, best) / temperature); };
  f64 total = 0;
  for (std::size_t i = 0; i < count; ++i) total += weight(pool_[i]);
  const f64 wanted = random_.uniform() * total;
  f64 reached = 0;
  u32 chosen = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sort_prefix(i + 1);
    const f64 own = weight(pool_[i]);
    if (i > 0 && own == 0) break;  // only rounding can lead here
    chosen = pool_[i].id;
    reached += own;
    if (reached >= wanted) break;
  }
  return chosen;
}

}  // namespace bezel

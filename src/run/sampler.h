// Chooses the next token. The same seed and the same logits give the same tokens on every platform.
#pragma once
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "base/types.h"

namespace bezel {

struct SamplerOptions {
  f32 temperature = 1;  // 0 or less: always the best token
  u32 top_k = 64;       // 0: no limit
  f32 top_p = 0.95F;    // 1 or more: off
  f32 min_p = 0;        // 0 or less: off
  // Penalties count the tokens given to accept(): once per distinct token, frequency once per occurrence.
  f32 repetition_penalty = 1;
  f32 presence_penalty = 0;
  f32 frequency_penalty = 0;
  std::vector<std::pair<u32, f32>> logit_bias = {};
  std::vector<u32> suppressed = {};  // tokens that are never chosen
  u64 seed = 0;
  // Report log-probabilities: of the chosen token and of this many of the likeliest. Without a value none are
  // computed, which over a large vocabulary takes longer than all else here.
  std::optional<u32> logprobs = {};
};

struct Candidate {
  u32 id = 0;
  f32 logit = 0;
};

struct TokenLogprob {
  u32 token = 0;
  f32 logprob = 0;
};

struct Sample {
  u32 token = 0;
  f32 logprob = 0;  // where asked for: of the model's own distribution, before bias, penalties and filters
  std::vector<TokenLogprob> top;
};

// What a device needs to know to choose as a Sampler will, up to rounding. `suppressed` lives as long as the
// sampler.
struct Draw {
  f32 temperature = 0;
  u32 top_k = 0;
  f32 top_p = 1, min_p = 0;
  f32 uniform = 0;  // the random number that decides
  std::span<const u32> suppressed = {};
};

// So few of the best tokens, from best_enough(), as a device may be asked for.
inline constexpr u32 kMostCandidates = 128;

// How many of the best tokens lead to the same choice as the whole vocabulary, at most kMostCandidates; 0:
// only the whole vocabulary does.
u32 best_enough(const SamplerOptions& options);

// bias, penalties, top-k, top-p, min-p, temperature, draw, in this order: the filters see the distribution at
// temperature 1. Equal logits are ordered by id.
class Sampler {
 public:
  explicit Sampler(SamplerOptions options);

  // One logit for each token of the vocabulary. A NaN is an error; infinities are certain or impossible
  // tokens.
  Result<Sample> sample(std::span<const f32> logits);

  // Only the best tokens, in any order, as a device may return them. `log_total` is ln of the sum of e^logit
  // over the whole vocabulary; without it, log-probabilities are relative to the candidates.
  Result<Sample> sample(std::span<const Candidate> candidates, std::optional<f64> log_total = std::nullopt);

  // How the sample after the next `skip` will be chosen, where best_enough() says that the best tokens
  // suffice.
  Draw foresee(u32 skip) const;

  // Tells the penalties which token was generated.
  void accept(u32 token) { ++counts_[token]; }

 private:
  Result<Sample> sample_pool(std::optional<f64> log_total);
  void adjust();
  Candidate* find(u32 id);
  f32 penalised(f32 logit, u32 count) const;
  f32 original_logit(u32 id) const;
  Result<u32> choose();
  void sort_prefix(std::size_t count);
  std::size_t top_p_count(f32 best);
  std::size_t min_p_count(f32 best, std::size_t count);
  u32 draw(f32 best, std::size_t count);

  SamplerOptions options_;
  Status valid_;
  Random random_;
  std::unordered_map<u32, u32> counts_;
  std::vector<Candidate> pool_;        // ordered by id, then rearranged: the best come first
  std::size_t sorted_ = 0;             // how many of the best are in their places
  std::vector<Candidate> unadjusted_;  // the original logits of the tokens that adjust() changed
};

}  // namespace bezel

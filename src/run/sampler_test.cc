#include "run/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace bezel {
namespace {

constexpr f32 kInfinity = std::numeric_limits<f32>::infinity();

// Nothing filtered, nothing penalised.
SamplerOptions plain(u64 seed = 1) {
  SamplerOptions options;
  options.top_k = 0;
  options.top_p = 1;
  options.seed = seed;
  return options;
}

std::vector<f32> logits_of(std::initializer_list<f64> probabilities) {
  std::vector<f32> logits;
  for (const f64 p : probabilities) logits.push_back(static_cast<f32>(std::log(p)));
  return logits;
}

// How often each token comes out.
std::map<u32, int> histogram(Sampler sampler, std::span<const f32> logits, int draws = 4000) {
  std::map<u32, int> counts;
  for (int i = 0; i < draws; ++i) {
    const auto sample = sampler.sample(logits);
    EXPECT_TRUE(sample);
    if (sample) ++counts[sample->token];
  }
  return counts;
}

std::set<u32> support(SamplerOptions options, std::span<const f32> logits) {
  std::set<u32> tokens;
  for (const auto& [token, count] : histogram(Sampler(std::move(options)), logits)) tokens.insert(token);
  return tokens;
}

u32 greedy(Sampler& sampler, std::span<const f32> logits) {
  const auto sample = sampler.sample(logits);
  EXPECT_TRUE(sample) << sample.error().message;
  return sample ? sample->token : ~0U;
}

std::vector<f32> many_logits(std::size_t count, u64 seed) {
  Random random(seed);
  std::vector<f32> logits(count);
  for (f32& logit : logits)
    logit = static_cast<f32>(std::floor((random.uniform() * 60 - 30) * 64) / 64);  // with ties
  return logits;
}

TEST(Sampler, GreedyTakesTheLowestIdOfTheBest) {
  SamplerOptions options;
  options.temperature = 0;
  Sampler sampler(options);
  EXPECT_EQ(greedy(sampler, std::vector<f32>{1, 3, 2, 3}), 1U);
  options.temperature = -1;
  sampler = Sampler(options);
  EXPECT_EQ(greedy(sampler, std::vector<f32>{-kInfinity, -5}), 1U);
}

// Worked out independently from the definition of the generator and of the draw.
TEST(Sampler, ASeedGivesAFixedSequence) {
  const std::vector<f32> logits = {3, 1, 2, -1, 2, 0.5};
  Sampler sampler(plain(7));
  std::vector<u32> tokens;
  for (int i = 0; i < 24; ++i) tokens.push_back(greedy(sampler, logits));
  EXPECT_EQ(tokens,
            (std::vector<u32>{0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 5, 1, 4, 4, 2, 4, 0, 2, 4, 2, 0, 0, 0}));
}

TEST(Sampler, FrequenciesFollowTheDistribution) {
  const auto logits = logits_of({0.5, 0.1, 0.3, 0.1});
  const auto counts = histogram(Sampler(plain()), logits, 20000);
  // Four standard deviations.
  EXPECT_NEAR(counts.at(0), 10000, 4 * 71);
  EXPECT_NEAR(counts.at(1), 2000, 4 * 43);
  EXPECT_NEAR(counts.at(2), 6000, 4 * 65);
}

TEST(Sampler, TemperatureSharpensAndFlattens) {
  const auto logits = logits_of({0.8, 0.2});
  SamplerOptions options = plain();
  options.temperature = 0.5F;  // 0.64 : 0.04
  EXPECT_NEAR(histogram(Sampler(options), logits, 10000)[0], 9412, 4 * 24);
  options.temperature = 2;  // 2 : 1
  EXPECT_NEAR(histogram(Sampler(options), logits, 10000)[0], 6667, 4 * 48);
  options.temperature = 1e-30F;
  EXPECT_EQ(histogram(Sampler(options), logits, 100)[0], 100);
}

TEST(Sampler, TopK) {
  SamplerOptions options = plain();
  options.top_k = 2;
  EXPECT_EQ(support(options, std::vector<f32>{0, 1, 1, 1}), (std::set<u32>{1, 2}));  // ties: lowest ids
  options.top_k = 100;
  EXPECT_EQ(support(options, std::vector<f32>{0, 1, 1, 1}), (std::set<u32>{0, 1, 2, 3}));
}

TEST(Sampler, TopPIncludesTheTokenThatCrosses) {
  const auto logits = logits_of({0.1, 0.5, 0.15, 0.25});
  SamplerOptions options = plain();
  options.top_p = 0.49F;
  EXPECT_EQ(support(options, logits), (std::set<u32>{1}));
  options.top_p = 0.6F;
  EXPECT_EQ(support(options, logits), (std::set<u32>{1, 3}));
  options.top_p = 0.76F;
  EXPECT_EQ(support(options, logits), (std::set<u32>{1, 2, 3}));
  options.top_p = 0;
  EXPECT_EQ(support(options, logits), (std::set<u32>{1}));
}

TEST(Sampler, TopPSeesWhatTopKLeft) {
  const auto logits = logits_of({0.1, 0.5, 0.15, 0.25});
  SamplerOptions options = plain();
  options.top_k = 2;     // 2/3 and 1/3
  options.top_p = 0.6F;  // of everything it would take two
  EXPECT_EQ(support(options, logits), (std::set<u32>{1}));
}

TEST(Sampler, MinP) {
  const auto logits = logits_of({0.1, 0.5, 0.15, 0.25});
  SamplerOptions options = plain();
  options.min_p = 0.29F;
  EXPECT_EQ(support(options, logits), (std::set<u32>{1, 2, 3}));
  options.min_p = 0.31F;
  EXPECT_EQ(support(options, logits), (std::set<u32>{1, 3}));
  options.min_p = 2;
  EXPECT_EQ(support(options, logits), (std::set<u32>{1}));
}

TEST(Sampler, FiltersSeeTheDistributionAtTemperatureOne) {
  const auto logits = logits_of({0.7, 0.2, 0.1});
  SamplerOptions options = plain();
  options.temperature = 100;
  options.top_p = 0.65F;
  EXPECT_EQ(support(options, logits), (std::set<u32>{0}));
}

TEST(Sampler, BiasAndSuppression) {
  SamplerOptions options;
  options.temperature = 0;
  options.logit_bias = {{2, 5}, {0, -1}};
  Sampler sampler(options);
  EXPECT_EQ(greedy(sampler, std::vector<f32>{3, 2.5, 0}), 2U);
  options.suppressed = {2, 99};
  sampler = Sampler(options);
  EXPECT_EQ(greedy(sampler, std::vector<f32>{3, 2.5, 0}), 1U);
  options.logit_bias = {{0, kInfinity}};
  sampler = Sampler(options);
  EXPECT_EQ(greedy(sampler, std::vector<f32>{-100, 2.5, 0}), 0U);
  EXPECT_EQ(greedy(sampler, std::vector<f32>{-kInfinity, 2.5, 0}), 1U);
}

TEST(Sampler, RepetitionPenaltyAppliesOncePerToken) {
  SamplerOptions options;
  options.temperature = 0;
  options.repetition_penalty = 2;
  Sampler sampler(options);
  const std::vector<f32> logits = {4, 2.5, 1.5};
  EXPECT_EQ(greedy(sampler, logits), 0U);
  sampler.accept(0);
  EXPECT_EQ(greedy(sampler, logits), 1U);  // 2, 2.5, 1.5
  sampler.accept(1);
  EXPECT_EQ(greedy(sampler, logits), 0U);  // 2, 1.25, 1.5
  for (int i = 0; i < 10; ++i) sampler.accept(0);
  EXPECT_EQ(greedy(sampler, logits), 0U);  // still 2
  EXPECT_EQ(greedy(sampler, std::vector<f32>{-1, -1.5, -9}), 0U);
  EXPECT_EQ(greedy(sampler, std::vector<f32>{-1, -9, -1.5}),
            2U);  // negative logits are multiplied: -2, -18, -1.5
}

TEST(Sampler, PresenceOnceFrequencyByCount) {
  const std::vector<f32> logits = {4, 2.5};
  SamplerOptions options;
  options.temperature = 0;
  options.presence_penalty = 1;
  Sampler presence(options);
  for (int i = 0; i < 5; ++i) presence.accept(0);
  EXPECT_EQ(greedy(presence, logits), 0U);
  options.presence_penalty = 0;
  options.frequency_penalty = 1;
  Sampler frequency(options);
  frequency.accept(0);
  EXPECT_EQ(greedy(frequency, logits), 0U);
  frequency.accept(0);
  EXPECT_EQ(greedy(frequency, logits), 1U);
}

TEST(Sampler, LogprobsAreOfTheRawDistribution) {
  const auto logits = logits_of({0.5, 0.2, 0.3});
  SamplerOptions options;
  options.temperature = 0;
  options.logit_bias = {{1, 10}};
  options.repetition_penalty = 1.5F;
  options.logprobs = 2;
  Sampler sampler(options);
  sampler.accept(1);
  auto sample = sampler.sample(logits);
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->token, 1U);
  EXPECT_NEAR(sample->logprob, std::log(0.2), 1e-6);
  ASSERT_EQ(sample->top.size(), 2U);
  EXPECT_EQ(sample->top[0].token, 0U);
  EXPECT_EQ(sample->top[1].token, 2U);
  EXPECT_NEAR(sample->top[1].logprob, std::log(0.3), 1e-6);

  options = plain();
  EXPECT_TRUE(Sampler(options).sample(logits)->top.empty());
  options.logprobs = 1000000;
  const auto many = many_logits(5000, 9);
  sample = Sampler(options).sample(many);
  ASSERT_TRUE(sample);
  ASSERT_EQ(sample->top.size(), 5000U);
  f64 sum = 0;
  for (const TokenLogprob& entry : sample->top) sum += std::exp(static_cast<f64>(entry.logprob));
  EXPECT_NEAR(sum, 1, 1e-5);
}

TEST(Sampler, Infinities) {
  const std::vector<f32> logits = {1, kInfinity, -kInfinity, kInfinity};
  EXPECT_EQ(support(plain(), logits), (std::set<u32>{1, 3}));
  EXPECT_EQ(support(SamplerOptions{}, logits), (std::set<u32>{1, 3}));
  EXPECT_EQ(support(plain(), std::vector<f32>{0, -kInfinity, 0}), (std::set<u32>{0, 2}));
}

TEST(Sampler, BadInputIsAnError) {
  const auto message = [](SamplerOptions options, std::vector<f32> logits) {
    const auto sample = Sampler(std::move(options)).sample(logits);
    return sample ? std::string("no error") : sample.error().message;
  };
  EXPECT_EQ(message({}, {1, NAN}),
            "The logit of token 1 is not a number; the model's weights may be damaged.");
  EXPECT_EQ(message({}, {}), "No token can be chosen: all of them are impossible or suppressed.");
  EXPECT_EQ(message({}, {-kInfinity}), "No token can be chosen: all of them are impossible or suppressed.");
  SamplerOptions options;
  options.suppressed = {0};
  EXPECT_EQ(message(options, {1}), "No token can be chosen: all of them are impossible or suppressed.");
  options = {};
  options.logit_bias = {{7, 1}};
  EXPECT_EQ(message(options, {1, 2}), "The logit bias names token 7, but the vocabulary has 2 tokens.");
  options.logit_bias = {{0, NAN}};
  EXPECT_EQ(message(options, {1}), "The logit bias of token 0 is not a number.");
  options = {};
  options.temperature = NAN;
  EXPECT_EQ(message(options, {1}), "The sampling option temperature is nan; it must be a finite number.");
  options = {};
  options.repetition_penalty = 0;
  EXPECT_EQ(message(options, {1}), "The sampling option repetition_penalty is 0; it must be more than 0.");
  options.repetition_penalty = 1e-38F;
  options.frequency_penalty = 3e38F;
  Sampler extreme(options);
  for (int i = 0; i < 9; ++i) extreme.accept(0);
  EXPECT_FALSE(extreme.sample(std::vector<f32>{1e10F}));  // infinity minus infinity
}

TEST(Sampler, CandidatesGiveTheSameTokensAsTheWholeVocabulary) {
  const auto logits = many_logits(3000, 4);
  SamplerOptions options;
  options.top_k = 20;
  options.logprobs = 3;
  options.seed = 5;
  std::vector<Candidate> best;
  f64 total = 0;
  for (u32 i = 0; i < logits.size(); ++i) {
    best.push_back({i, logits[i]});
    total += std::exp(static_cast<f64>(logits[i]));
  }
  std::ranges::sort(best, [](const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  });
  best.resize(20);
  std::ranges::reverse(best);
  Sampler whole(options);
  Sampler part(options);
  for (int i = 0; i < 200; ++i) {
    const auto a = whole.sample(logits);
    const auto b = part.sample(best, std::log(total));
    ASSERT_TRUE(a && b);
    EXPECT_EQ(a->token, b->token);
    EXPECT_NEAR(a->logprob, b->logprob, 1e-5);
    EXPECT_EQ(a->top[2].token, b->top[2].token);
  }
  best.push_back(best.front());
  EXPECT_FALSE(part.sample(best));
}

// The filters walk a lazily sorted list; a full sort must give the same.
TEST(Sampler, LazySortingDrawsFromTheRightTokens) {
  const auto logits = many_logits(20000, 6);
  std::vector<u32> order(logits.size());
  for (u32 i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order,
                    [&](u32 a, u32 b) { return logits[a] > logits[b] || (logits[a] == logits[b] && a < b); });
  for (const f32 temperature : {1.0F, 50.0F}) {
    SamplerOptions options = plain(11);
    options.temperature = temperature;
    Sampler sampler(options);
    Random random(11);
    f64 total = 0;
    for (const f32 logit : logits)
      total += std::exp((static_cast<f64>(logit) - logits[order[0]]) / temperature);
    for (int i = 0; i < 20; ++i) {
      const f64 wanted = random.uniform() * total;
      f64 reached = 0;
      std::size_t at = 0;
      while ((reached += std::exp((static_cast<f64>(logits[order[at]]) - logits[order[0]]) / temperature)) <
             wanted)
        ++at;
      EXPECT_EQ(greedy(sampler, logits), order[at]);
    }
  }
}

TEST(Sampler, ALargeVocabularyGivesAFixedSequence) {
  const auto logits = many_logits(262144, 8);
  SamplerOptions options;
  options.temperature = 20;
  options.seed = 123;
  options.repetition_penalty = 1.1F;
  options.frequency_penalty = 0.3F;
  Sampler sampler(options);
  std::vector<u32> tokens;
  for (int i = 0; i < 12; ++i) {
    tokens.push_back(greedy(sampler, logits));
    sampler.accept(tokens.back());
  }
  EXPECT_EQ(tokens, (std::vector<u32>{169916, 220109, 204284, 147561, 166111, 140029, 239612, 119774, 133609,
                                      27266, 198985, 229959}));
}

// With exactly as many candidates as best_enough() asks for, whatever the settings that allow it.
TEST(Sampler, TheBestChooseLikeTheWholeVocabulary) {
  for (const u32 top_k : {1u, 5u, 64u, 100u}) {
    for (const f32 temperature : {0.0F, 0.7F, 2.0F}) {
      for (const f32 top_p : {0.5F, 1.0F}) {
        SamplerOptions options;
        options.top_k = top_k;
        options.temperature = temperature;
        options.top_p = top_p;
        options.min_p = 0.01F;
        options.suppressed = {17, 3, 250};
        options.logprobs = 20;
        const u32 enough = best_enough(options);
        ASSERT_GE(enough, 20U);
        Sampler all(options), best(options);
        for (u64 step = 0; step < 40; ++step) {
          const auto logits = many_logits(300, step);
          std::vector<Candidate> candidates;
          for (u32 id = 0; id < logits.size(); ++id) candidates.push_back({id, logits[id]});
          std::ranges::stable_sort(candidates, std::greater{}, &Candidate::logit);
          candidates.resize(enough);
          f64 sum = 0;
          for (const f32 logit : logits) sum += std::exp(static_cast<f64>(logit));
          const auto expected = all.sample(logits), got = best.sample(candidates, std::log(sum));
          ASSERT_TRUE(expected && got);
          EXPECT_EQ(got->token, expected->token);
          EXPECT_NEAR(got->logprob, expected->logprob, 1e-5);
          ASSERT_EQ(got->top.size(), expected->top.size());
          for (std::size_t i = 0; i < got->top.size(); ++i)
            EXPECT_EQ(got->top[i].token, expected->top[i].token);
        }
      }
    }
  }
}

TEST(Sampler, SometimesOnlyTheWholeVocabularyWillDo) {
  SamplerOptions options;
  EXPECT_EQ(best_enough(options), 64U);
  options.suppressed = {1, 2};
  EXPECT_EQ(best_enough(options), 66U);
  options.temperature = 0;
  EXPECT_EQ(best_enough(options), 3U);
  options.logprobs = 9;
  EXPECT_EQ(best_enough(options), 9U);
  const auto with = [](auto change) {
    SamplerOptions changed;
    change(changed);
    return best_enough(changed);
  };
  EXPECT_EQ(with([](auto& o) { o.top_k = 0; }), 0U);
  EXPECT_EQ(with([](auto& o) { o.top_k = ~0U; }), 0U);
  EXPECT_EQ(with([](auto& o) { o.logit_bias = {{5, 1.0F}}; }), 0U);
  EXPECT_EQ(with([](auto& o) { o.repetition_penalty = 1.1F; }), 0U);
  EXPECT_EQ(with([](auto& o) { o.presence_penalty = 0.1F; }), 0U);
  EXPECT_EQ(with([](auto& o) { o.frequency_penalty = -0.1F; }), 0U);
  EXPECT_EQ(with([](auto& o) { o.logprobs = ~0U; }), 0U);
  EXPECT_EQ(with([](auto& o) { o.suppressed.resize(200); }), 0U);
}

}  // namespace
}  // namespace bezel

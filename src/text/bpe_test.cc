#include "text/bpe.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace bezel {
namespace {

struct Rule {
  u32 left, right, merged;
};

// The definition, word for word: the pair of the lowest rank, the leftmost of equals, again and again.
std::vector<u32> naive(std::vector<u32> symbols, const std::vector<Rule>& rules) {
  std::map<std::pair<u32, u32>, u32> rank_of;
  for (u32 rank = 0; rank < rules.size(); ++rank)
    rank_of.try_emplace({rules[rank].left, rules[rank].right}, rank);
  while (true) {
    u32 best = kNoToken;
    size_t where = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = rank_of.find({symbols[i], symbols[i + 1]});
      if (found != rank_of.end() && found->second < best) {
        best = found->second;
        where = i;
      }
    }
    if (best == kNoToken) return symbols;
    symbols[where] = rules[best].merged;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(where) + 1);
  }
}

MergeTable table_of(const std::vector<Rule>& rules) {
  MergeTable table(rules.size());
  for (u32 rank = 0; rank < rules.size(); ++rank) {
    table.add(rules[rank].left, rules[rank].right, {rank, rules[rank].merged});
  }
  return table;
}

std::vector<u32> run(Bpe& bpe, const std::vector<u32>& symbols) {
  for (const u32 symbol : symbols) bpe.push(symbol);
  std::vector<u32> out;
  bpe.finish(out);
  return out;
}

TEST(Bpe, AgreesWithTheDefinition) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    // Few symbols, so that most pairs merge; products may coincide, and a pair may have two rules.
    const u32 alphabet = 2 + random() % 4;
    const u32 total = alphabet + 1 + random() % 40;
    std::vector<Rule> rules(random() % 120);
    for (Rule& rule : rules) {
      rule = {static_cast<u32>(random() % total), static_cast<u32>(random() % total),
              static_cast<u32>(random() % total)};
    }
    const MergeTable table = table_of(rules);
    Bpe bpe(table);
    for (int text = 0; text < 10; ++text) {
      std::vector<u32> symbols(random() % 60);
      for (u32& symbol : symbols) symbol = random() % 16 == 0 ? Bpe::kForeign + 5 : random() % alphabet;
      ASSERT_EQ(run(bpe, symbols), naive(symbols, rules));
    }
  }
}

TEST(Bpe, NothingGivesNothing) {
  const MergeTable empty;
  Bpe bpe(empty);
  EXPECT_TRUE(run(bpe, {}).empty());
  EXPECT_EQ(run(bpe, {4}), std::vector<u32>{4});
  EXPECT_EQ(run(bpe, {4, 4, 4}), (std::vector<u32>{4, 4, 4}));
}

TEST(MergeTable, KeepsTheFirstOfADoublePairAndIsNeverTooFull) {
  for (const u32 count : {0u, 1u, 2u, 3u, 1000u}) {
    MergeTable table(count);
    for (u32 i = 0; i < count; ++i) table.add(i, i * i, {i, i + 1});
    for (u32 i = 0; i < count; ++i) table.add(i, i * i, {i + count, 0});
    for (u32 i = 0; i < count; ++i) EXPECT_EQ(table.find(i, i * i).rank, i);
    EXPECT_EQ(table.find(count, count * count + 7).rank, kNoToken);
  }
}

}  // namespace
}  // namespace bezel

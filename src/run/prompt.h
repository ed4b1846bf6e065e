// What a session is fed: token ids and, at some places, embeddings that stand for a picture or a recording.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "base/types.h"

namespace bezel {

// What a tower made of one picture, frame or clip.
struct SoftTokens {
  u32 count = 0;
  std::vector<f32> rows;     // (count, d)
  bool picture = false;      // in some models its tokens see each other
  std::array<u8, 32> key{};  // of what it was made from, and how: equal keys mean equal rows
};

// Soft tokens at [first, end) of a prompt, whose ids there are those of placeholders.
struct SoftRun {
  u32 first = 0;
  std::shared_ptr<const SoftTokens> tokens;
  u32 end() const { return first + tokens->count; }
};

struct Prompt {
  std::vector<u32> ids;
  std::vector<SoftRun> soft = {};  // in order, without overlap

  u32 size() const { return static_cast<u32>(ids.size()); }
  // `more` behind what is here.
  void append(const Prompt& more);
  // The first `count` tokens; a run that would be cut is left out, and all behind its beginning.
  void truncate(u32 count);
};

// What follows the first `count` tokens, which must not end within a run.
Prompt rest_of(const Prompt& prompt, u32 count);

// How many tokens two prompts begin with in common; soft tokens count as a whole.
u32 common_prefix(const Prompt& a, const Prompt& b);

}  // namespace bezel

// What tests of decoding token by token share.
#pragma once
#include <span>
#include <vector>

#include "run/sampler.h"
#include "run/session.h"
#include "support.h"

namespace bezel {

inline void feed(Session& session, std::span<const u32> tokens, u32 top) {
  const Status status = run_now(session.feed(tokens, {}, top));
  ASSERT_OK(status);
}

// Takes `count` more tokens from where the session is. With `more_at_end` a step stays under way.
inline std::vector<u32> decode(Session& session, Sampler& sampler, u32 top, u32 count,
                               bool more_at_end = false) {
  std::vector<u32> tokens;
  for (u32 i = 0; i < count; ++i) {
    const auto sample = sampler.sample(session.candidates().best, session.candidates().log_total);
    EXPECT_TRUE(sample) << sample.error().message;
    if (!sample) break;
    tokens.push_back(sample->token);
    const Status status = run_now(session.decode(sample->token, top, sampler, more_at_end || i + 1 < count));
    EXPECT_TRUE(status) << status.error().message;
    if (!status) break;
  }
  return tokens;
}

}  // namespace bezel

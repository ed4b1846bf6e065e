// How a request says to choose tokens, in OpenAI's names: temperature, top_p, presence_penalty,
// frequency_penalty, seed, logit_bias, logprobs, top_logprobs; and top_k, min_p, repetition_penalty.
#pragma once
#include "api/arguments.h"
#include "run/sampler.h"

namespace bezel {

// What the request does not name stays as it is, but for the seed, which is then random.
Status read_sampling(const Arguments& in, u32 vocabulary, SamplerOptions& out);

}  // namespace bezel

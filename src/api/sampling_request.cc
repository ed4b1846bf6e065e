#include "api/sampling_request.h"

#include <charconv>
#include <cmath>
#include <random>

#include "base/quote.h"

namespace bezel {
namespace {

using nlohmann::json;

Status read_number(const Arguments& in, const char* key, f32 least, f32 most, f32& out) {
  TRY(in.into(key, out));
  if (in.find(key) != nullptr && !(out >= least && out <= most)) {
    return invalid("'{}' is {}; it must be from {} to {}.", key, out, least, most);
  }
  return {};
}

Status read_seed(const Arguments& in, u64& out) {
  const json* seed = in.find("seed");
  if (seed == nullptr) {
    std::random_device random;
    out = u64{random()} << 32 | random();
    return {};
  }
  const f64 number = seed->is_number() ? seed->get<f64>() : NAN;
  if (!(std::abs(number) < 0x1p63) || number != std::trunc(number)) {
    return invalid("'seed' must be a whole number.");
  }
  out = seed->is_number_integer() ? seed->get<u64>() : static_cast<u64>(static_cast<i64>(number));
  return {};
}

// {"token id": bias}
Status read_logit_bias(const Arguments& in, u32 vocabulary, SamplerOptions& out) {
  const json* biases = in.find("logit_bias");
  if (biases == nullptr) return {};
  if (!biases->is_object()) return invalid("'logit_bias' must be an object from token ids to numbers.");
  for (const auto& [key, bias] : biases->items()) {
    u32 token = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token);
    if (error != std::errc() || end != key.data() + key.size() || token >= vocabulary) {
      return invalid("'logit_bias' names the token {}; ids are whole numbers from 0 to {}.", quote(key),
                     vocabulary - 1);
    }
    const f64 value = bias.is_number() ? bias.get<f64>() : NAN;
    if (!(std::abs(value) <= 100)) {
      return invalid("'logit_bias' of token {} must be a number from -100 to 100.", token);
    }
    out.logit_bias.emplace_back(token, static_cast<f32>(value));
  }
  return {};
}

Status read_logprobs(const Arguments& in, SamplerOptions& out) {
  const bool wanted = TRY(in.get("logprobs", false));
  const auto top = TRY(in.optional<u32>("top_logprobs"));
  if (top && !wanted) return invalid("'top_logprobs' needs 'logprobs': true.");
  if (top && *top > 20) return invalid("'top_logprobs' is {}; it must be from 0 to 20.", *top);
  if (wanted) out.logprobs = top.value_or(0);
  return {};
}

}  // namespace

Status read_sampling(const Arguments& in, u32 vocabulary, SamplerOptions& out) {
  TRY(read_number(in, "temperature", 0, 100, out.temperature));
  TRY(read_number(in, "top_p", 0, 1, out.top_p));
  TRY(read_number(in, "min_p", 0, 1, out.min_p));
  TRY(read_number(in, "presence_penalty", -2, 2, out.presence_penalty));
  TRY(read_number(in, "frequency_penalty", -2, 2, out.frequency_penalty));
  TRY(read_number(in, "repetition_penalty", 0.01F, 100, out.repetition_penalty));
  TRY(in.into("top_k", out.top_k));
  TRY(read_seed(in, out.seed));
  TRY(read_logit_bias(in, vocabulary, out));
  return read_logprobs(in, out);
}

}  // namespace bezel

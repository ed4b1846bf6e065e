// How fast a model runs on a device, and how fast that device could read its weights.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "run/engine.h"

namespace bezel {

struct BenchOptions {
  u32 prompt = 512;    // tokens of a prompt
  u32 generate = 128;  // tokens generated one by one
  u32 depth = 0;       // tokens already in the context when generating begins
  u32 repetitions = 3;
  std::function<bool()> go_on;  // optional; false stops with kCancelled
};

// All launches of the kernels with one label in a pass.
struct KernelTotal {
  std::string label;
  u32 dispatches = 0;
  std::optional<f64> milliseconds;  // without timestamps unknown
};

struct BenchPart {
  f64 tokens_per_second = 0;  // the median of all repetitions
  u32 pass_tokens = 0;        // of the pass that the rest is about
  u32 dispatches = 0;
  std::vector<KernelTotal> kernels;  // the most expensive first; none on the CPU
};

struct BenchReport {
  BenchPart prefill, decode;
  u64 bytes_per_token = 0;             // weights that decoding one token reads
  std::optional<f64> read_bandwidth;   // bytes per second of a loop that only reads; of a GPU alone
  std::optional<f64> bandwidth_share;  // of that, what decoding reads of the weights
};

// Greedy, so that what a real greedy reply computes is measured, its read-back included. `device` is the one
// that the engine was loaded to, null for the CPU.
Task<Result<BenchReport>> bench(Engine& engine, Device* device, BenchOptions options);

// What an encoder takes for one picture or recording, in seconds.
struct EncoderReport {
  u32 tokens = 0;   // soft tokens that it made
  f64 first = 0;    // the first time, with its weights loaded and kernels compiled
  f64 prepare = 0;  // medians of the later times: on the host, until the computation begins
  f64 encode = 0;   // from there until the soft tokens are read back
};
Task<Result<EncoderReport>> bench_picture(Towers& towers, Image picture, u32 budget, BenchOptions options);
Task<Result<EncoderReport>> bench_recording(Towers& towers, Clip clip, BenchOptions options);

// Bytes per second that `device` reads in a plain loop over a buffer much larger than its caches.
Task<Result<f64>> read_bandwidth(Device& device);

}  // namespace bezel

// Finds the fastest variants of a model's kernels on its device: a short trial, whose result is worth keeping
// (run/tuning_file.h).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "graph/tuning.h"
#include "run/backend.h"

namespace bezel {

struct TuneOptions {
  bool software = false;        // even where the adapter is software
  f64 seconds = 5;              // after which no further variant is tried, of decoding and of prompts each
  u32 rounds = 5;               // passes with each
  std::function<bool()> go_on;  // optional; false stops with kCancelled
};

struct TunedProduct {
  ProductShape shape;
  u32 dispatches = 0;         // of a token, or of a pass of shape.tokens
  std::string variant;        // empty where the table's choice stands
  f64 before = 0, after = 0;  // microseconds of a dispatch, the medians
};

struct TuneReport {
  std::vector<TunedProduct> products;
  u32 variants = 0, tried = 0;
  Tuning tuning;  // what the backend knew before, and what was found now

  // What is kept, with what was found now in its place.
  Tuning added_to(Tuning kept) const;
};

// Every product of a decoded token, and of a prompt's largest pass, timed in passes over the real weights
// with each variant in turn. The table's choice stands unless another is clearly faster. The backend uses the
// result for the plans it makes from here on. kUnsupported where there is no GPU, where it has no timestamps,
// and on software that was not asked for.
Task<Result<TuneReport>> tune(Backend& backend, const DeviceInfo& info, TuneOptions options = {});

}  // namespace bezel

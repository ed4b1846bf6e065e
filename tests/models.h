// What tests of whole models share: loading one, its logits, comparing them.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <span>

#include "run/session.h"
#include "support.h"

namespace bezel {

// The full set of goldens lies beside a checkout that has it; $BEZEL_GOLDEN names another place.
inline std::string golden_path(const std::string& name) {
  const char* place = std::getenv("BEZEL_GOLDEN");
  return std::string(place != nullptr ? place : "../shared/golden") + "/" + name;
}

struct Loaded {
  std::unique_ptr<Gguf> file;
  std::unique_ptr<Backend> backend;  // null when loading failed, which is a failure of the test
};

inline Loaded load_model(const std::string& path, const LoadOptions& options = {}) {
  Loaded loaded;
  auto file = open_gguf(path);
  if (!file) {
    ADD_FAILURE() << file.error().message;
    return loaded;
  }
  loaded.file = std::make_unique<Gguf>(std::move(*file));
  auto backend = run_now(load_backend(*loaded.file, options));
  if (!backend) {
    ADD_FAILURE() << path << ": " << backend.error().message;
    return loaded;
  }
  loaded.backend = std::move(*backend);
  return loaded;
}

// Of every token, row by row.
inline std::vector<f32> logits_of(Backend& backend, std::span<const u32> ids) {
  auto session = Session::create(backend, 256);
  std::vector<f32> logits;
  const Status status = session ? run_now(session->feed_all({{ids.begin(), ids.end()}}, logits))
                                : Status(std::unexpected(session.error()));
  EXPECT_TRUE(status) << status.error().message;
  return logits;
}

inline u32 arg_max(std::span<const f32> x) {
  return static_cast<u32>(std::ranges::max_element(x) - x.begin());
}

// The largest; what is not a number is further away than anything.
inline f64 difference(std::span<const f32> a, std::span<const f32> b) {
  EXPECT_EQ(a.size(), b.size());
  f64 largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max<f64>(largest, std::isfinite(a[i]) ? std::abs(a[i] - b[i]) : 1e30);
  }
  return largest;
}

// Rows of `vocab` logits whose likeliest token is the same.
inline u32 same_arg_max(std::span<const f32> a, std::span<const f32> b, std::size_t vocab) {
  u32 same = 0;
  for (std::size_t row = 0; row + vocab <= std::min(a.size(), b.size()); row += vocab) {
    same += arg_max(a.subspan(row, vocab)) == arg_max(b.subspan(row, vocab));
  }
  return same;
}

}  // namespace bezel

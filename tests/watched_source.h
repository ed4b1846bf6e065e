// For tests: a source that counts what is read from a part of it, and that can be made to fail.
#pragma once
#include <algorithm>
#include <functional>
#include <limits>

#include "gguf/gguf.h"
#include "support.h"

namespace bezel {

// Shared by a source and the test that watches it.
struct Watch {
  u64 first = 0, last = std::numeric_limits<u64>::max();  // what is counted
  u64 bytes = 0;
  u32 reads = 0;
  bool broken = false;  // reads of the part fail
};

class WatchedSource final : public Source {
 public:
  WatchedSource(std::unique_ptr<Source> source, Watch& watch) : source_(std::move(source)), watch_(watch) {}
  u64 size() const override { return source_->size(); }
  const std::string& name() const override { return source_->name(); }
  Task<Status> read(u64 offset, MutableBytes out) override {
    const u64 begin = std::max(offset, watch_.first), end = std::min(offset + out.size(), watch_.last);
    if (begin < end) {
      if (watch_.broken) co_return fail(ErrorKind::kIo, "{} was unplugged.", name());
      watch_.bytes += end - begin;
      ++watch_.reads;
    }
    co_return co_await source_->read(offset, out);
  }

 private:
  std::unique_ptr<Source> source_;
  Watch& watch_;
};

// `watch` then counts the reads of the tensor `name`.
inline Result<Gguf> open_watched(const std::string& path, std::string_view name, Watch& watch) {
  std::vector<std::unique_ptr<Source>> parts;
  parts.push_back(std::make_unique<WatchedSource>(TRY(open_file(path)), watch));
  Gguf file = TRY(run_now(Gguf::open(std::move(parts))));
  const TensorInfo* tensor = file.tensor(name);
  if (tensor == nullptr) return fail(ErrorKind::kNotFound, "{} has no tensor {}.", path, name);
  watch = {.first = tensor->offset, .last = tensor->offset + tensor->bytes};
  return file;
}

}  // namespace bezel

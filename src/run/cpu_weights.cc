#include "run/cpu_weights.h"

#include <algorithm>

#include "base/memory.h"

namespace bezel {

Task<Status> CpuWeights::load(Gguf& file, std::span<const TensorInfo> tensors,
                              std::function<bool(u32)> wanted, const LoadOptions& options) {
  constexpr std::size_t kChunk = 16 << 20;
  u64 total = 0, done = 0;
  for (u32 i = 0; i < tensors.size(); ++i) total += wanted(i) ? tensors[i].bytes : 0;
  if (total > memory_limit()) {
    co_return fail(ErrorKind::kMemory, "{} bytes of weights are more than this machine's memory ({} bytes).",
                   total, memory_limit());
  }
  for (u32 i = 0; i < tensors.size(); ++i) {
    const TensorInfo& info = tensors[i];
    std::vector<std::byte>& out = tensors_.emplace_back();
    if (!wanted(i)) continue;
    out.resize(static_cast<std::size_t>(info.bytes));
    for (u64 at = 0; at < info.bytes; at += kChunk) {
      const auto part = MutableBytes(out).subspan(static_cast<std::size_t>(at));
      const std::size_t n = std::min<std::size_t>(kChunk, part.size());
      CO_TRY(co_await file.read(info, at, part.first(n)));
      done += n;
      if (options.progress && !options.progress(done, total))
        co_return fail(ErrorKind::kCancelled, "Loading was stopped.");
    }
  }
  co_return Status{};
}

}  // namespace bezel

#include <algorithm>
#include <thread>
#include <vector>

#include "base/parallel.h"

namespace bezel {

void parallel_for(u64 count, u64 work, const std::function<void(u64, u64)>& body) {
  constexpr u64 kWorthAThread = 2'000'000;
  const u64 cores = std::max(1u, std::thread::hardware_concurrency());
  const u64 threads = std::min({cores, count, std::max<u64>(1, count * work / kWorthAThread)});
  std::vector<std::thread> others;
  for (u64 i = 1; i < threads; ++i) {
    others.emplace_back([&, i] { body(count * i / threads, count * (i + 1) / threads); });
  }
  if (count > 0) body(0, count / std::max<u64>(1, threads));
  for (auto& thread : others) thread.join();
}

}  // namespace bezel

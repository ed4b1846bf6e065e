// Loops over many independent items on all cores; on one core where there are no threads.
#pragma once
#include <functional>

#include "base/types.h"

namespace bezel {

// Calls body(begin, end) over disjoint ranges that cover [0, count). `work` is the cost of one item in
// multiply-adds: small loops stay on the calling thread.
void parallel_for(u64 count, u64 work, const std::function<void(u64, u64)>& body);

}  // namespace bezel

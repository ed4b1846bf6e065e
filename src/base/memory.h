// How much memory a single owner may ask for before it is an error rather than a crash.
#pragma once
#include "base/types.h"

namespace bezel {

u64 memory_limit();

}  // namespace bezel

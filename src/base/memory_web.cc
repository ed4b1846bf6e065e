#include "base/memory.h"

namespace bezel {

// Half of what a 32-bit address space can hold: a browser grants little more to one page.
u64 memory_limit() { return u64{2} << 30; }

}  // namespace bezel

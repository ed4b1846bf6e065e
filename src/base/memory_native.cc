#include <unistd.h>

#include "base/memory.h"

namespace bezel {

u64 memory_limit() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<u64>(pages) * static_cast<u64>(page) : u64{8} << 30;
}

}  // namespace bezel

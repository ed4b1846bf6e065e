// What a dispatch binds: a part of a buffer, and the numbers that describe the launch.
#pragma once
#include <array>

#include "base/types.h"

namespace bezel {

struct BufferView {
  u32 buffer = 0;  // Buffer::id()
  u64 offset = 0;
  u64 bytes = 0;
};

struct Grid {
  u32 x = 1, y = 1, z = 1;
};

}  // namespace bezel

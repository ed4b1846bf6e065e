// Sine and cosine that do not depend on the platform's libm (see portable_math.h). Angles are in turns: 0.25
// is a right angle, so that whole and quarter turns are exact.
#pragma once
#include <cmath>
#include <utility>

#include "base/types.h"

namespace bezel {

struct SinCos {
  f64 sin = 0, cos = 1;
};

// To within 1e-15, for angles of up to 2^40 turns.
inline SinCos sin_cos_turns(f64 turns) {
#pragma clang fp contract(off)
  turns -= std::floor(turns);
  const f64 quarter = std::floor(turns * 4 + 0.5);  // 0 to 4
  const f64 x = (turns - quarter * 0.25) * 0x1.921fb54442d18p+2;
  const f64 square = x * x;
  f64 sin = 1, cos = 1;  // Taylor, up to x^19 / 19!; |x| is at most pi / 4
  for (int n = 18; n >= 2; n -= 2) {
    sin = 1 - sin * square / (n * (n + 1));
    cos = 1 - cos * square / (n * (n - 1));
  }
  sin *= x;
  switch (static_cast<int>(quarter) & 3) {
    case 0:
      return {sin, cos};
    case 1:
      return {cos, -sin};
    case 2:
      return {-sin, -cos};
    default:
      return {-cos, sin};
  }
}

}  // namespace bezel

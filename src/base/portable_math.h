// exp and log whose results do not depend on the platform's libm: sampling must draw the same tokens natively
// and in WebAssembly. Only IEEE operations in a fixed order, none of them fused.
#pragma once
#include <bit>
#include <cmath>
#include <limits>

#include "base/types.h"

namespace bezel {

namespace detail {
// ln 2 in two parts: products of the first with an exponent are exact.
inline constexpr f64 kLn2High = 0x1.62e42fee00000p-1;
inline constexpr f64 kLn2Low = 0x1.a39ef35793c76p-33;

constexpr f64 power_of_two(int exponent) {
  return std::bit_cast<f64>(static_cast<u64>(exponent + 1023) << 52);
}
}  // namespace detail

// e^x, to within 1e-14 relative for normal results.
inline f64 portable_exp(f64 x) {
#pragma clang fp contract(off)
  if (std::isnan(x)) return x;
  if (x > 709.79) return std::numeric_limits<f64>::infinity();
  if (x < -745.2) return 0;
  // x = k ln 2 + r with |r| <= ln 2 / 2. Adding 1.5 * 2^52 rounds to a whole number.
  const f64 k = (x * 0x1.71547652b82fep+0 + 0x1.8p52) - 0x1.8p52;
  const f64 r = (x - k * detail::kLn2High) - k * detail::kLn2Low;
  f64 sum = 1.0 / 6227020800.0;  // Taylor, up to r^13 / 13!
  constexpr f64 kInverseFactorials[] = {
      1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
      1.0 / 120,       1.0 / 24,       1.0 / 6,       1.0 / 2,      1.0,         1.0};
  for (const f64 coefficient : kInverseFactorials) sum = sum * r + coefficient;
  const int exponent = static_cast<int>(k);
  const int half = exponent / 2;  // in two steps: 2^k itself may be out of range
  return sum * detail::power_of_two(half) * detail::power_of_two(exponent - half);
}

// ln x, to within 1e-14 relative.
inline f64 portable_log(f64 x) {
#pragma clang fp contract(off)
  if (std::isnan(x) || x < 0) return std::numeric_limits<f64>::quiet_NaN();
  if (x == 0) return -std::numeric_limits<f64>::infinity();
  if (std::isinf(x)) return x;
  int exponent = 0;
  if (x < std::numeric_limits<f64>::min()) {
    x *= 0x1p54;
    exponent = -54;
  }
  const u64 bits = std::bit_cast<u64>(x);
  exponent += static_cast<int>(bits >> 52) - 1023;
  f64 m = std::bit_cast<f64>((bits & 0x000fffffffffffff) | 0x3ff0000000000000);
  if (m > 0x1.6a09e667f3bcdp+0) {  // keep m within [sqrt 1/2, sqrt 2]
    m *= 0.5;
    ++exponent;
  }
  const f64 s = (m - 1) / (m + 1);  // ln m = 2 (s + s^3/3 + s^5/5 + ...)
  const f64 square = s * s;
  f64 sum = 0;
  for (int n = 23; n >= 1; n -= 2) sum = sum * square + 1.0 / n;
  return exponent * detail::kLn2High + (2 * s * sum + exponent * detail::kLn2Low);
}

}  // namespace bezel

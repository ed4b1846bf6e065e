// The vector of lib_product.wgsl as digits (lib_digits.wgsl, which has tile_fours), for products by integers.
const UNIT: u32 = 64u;
// Of each number of a unit an array over the units: one index to be kept within bounds serves them all.
var<workgroup> x_digits: array<array<vec4u, PITCH>, 12>;  // [high, middle, low; quarter][unit]
var<workgroup> x_scales: array<array<f32, PITCH>, 8>;     // [factor, sum; quarter][unit]

const KEPT: u32 = CHUNK;
fn keep_quarter(unit: u32, quarter: u32, high: vec4u, middle: vec4u, low: vec4u, factor: f32, sum: f32) {
  x_digits[quarter][unit] = high;
  x_digits[quarter + 4u][unit] = middle;
  x_digits[quarter + 8u][unit] = low;
  x_scales[quarter][unit] = factor;
  x_scales[quarter + 4u][unit] = sum;
}

fn bring_chunk(x: u32, first: u32, end: u32, cols: u32, thread: u32) {
  for (var done = 0u; done < (end - first) * 4u; done += WG) {
    let n = done + thread;
    let at = x + quarter_place(min(first * 4u + n, cols / 16u - 1u)) * 16u;
    tile_fours(n * 4u, product_four(at, 4u), product_four(at + 4u, 4u), product_four(at + 8u, 4u), product_four(at + 12u, 4u));
  }
}

fn unit_x(at: u32) -> UnitDigits {
  return UnitDigits(Quarters(x_digits[0][at], x_digits[1][at], x_digits[2][at], x_digits[3][at]),
                    Quarters(x_digits[4][at], x_digits[5][at], x_digits[6][at], x_digits[7][at]),
                    Quarters(x_digits[8][at], x_digits[9][at], x_digits[10][at], x_digits[11][at]),
                    vec4f(x_scales[4][at], x_scales[5][at], x_scales[6][at], x_scales[7][at]),
                    vec4f(x_scales[0][at], x_scales[1][at], x_scales[2][at], x_scales[3][at]));
}
fn row_product(words: UnitWords, part: u32, x: UnitDigits) -> f32 { return unit_dot(words, part, x); }

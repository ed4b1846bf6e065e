// The vector of lib_product.wgsl as digits (lib_digits.wgsl), for products by integers.
const UNIT: u32 = 64u;
// Of each number of a unit an array over the units: one index to be kept within bounds serves them all.
var<workgroup> x_digits: array<array<vec4u, PITCH>, 12>;  // [high, middle, low; quarter][unit]
var<workgroup> x_scales: array<array<f32, PITCH>, 8>;     // [factor, sum; quarter][unit]

// From four `first` of the chunk on, a quarter. All threads come here: what lies beyond the chunk is not kept.
fn tile_fours(first: u32, a: vec4f, b: vec4f, c: vec4f, d: vec4f) {
  let quarter = (first >> 2u) & 3u;
  let at = first / 16u;
  let up = digits_up(max(max(most4(a), most4(b)), max(most4(c), most4(d))));
  let sum = total((a + b) + (c + d));
  let down = digits_down(up, sum);
  if (at >= CHUNK) { return; }
  x_scales[quarter][at] = down;
  x_scales[quarter + 4u][at] = sum;
  let factor = bitcast<f32>(up << 23u);
  let i = digits(a, factor);
  let j = digits(b, factor);
  let k = digits(c, factor);
  let l = digits(d, factor);
  x_digits[quarter][at] = vec4u(i.x, j.x, k.x, l.x);
  x_digits[quarter + 4u][at] = vec4u(i.y, j.y, k.y, l.y);
  x_digits[quarter + 8u][at] = vec4u(i.z, j.z, k.z, l.z);
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

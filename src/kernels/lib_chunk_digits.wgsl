// The vector of lib_product.wgsl as digits (lib_digits.wgsl), for products by integers.
const UNIT: u32 = 64u;
var<workgroup> x_digits: array<vec4u, 12u * PITCH>;  // [high, middle, low][quarter][unit]
var<workgroup> x_scales: array<f32, 8u * PITCH>;     // [factor, sum][quarter][unit]

// From four `first` of the chunk on, a quarter.
fn tile_fours(first: u32, a: vec4f, b: vec4f, c: vec4f, d: vec4f) {
  let at = ((first >> 2u) & 3u) * PITCH + first / 16u;
  let up = digits_up(a, b, c, d);
  x_scales[at] = bitcast<f32>((254u - up) << 23u);
  x_scales[at + 4u * PITCH] = total((a + b) + (c + d));
  let factor = bitcast<f32>(up << 23u);
  let i = digits(a, factor);
  let j = digits(b, factor);
  let k = digits(c, factor);
  let l = digits(d, factor);
  x_digits[at] = vec4u(i.x, j.x, k.x, l.x);
  x_digits[at + 4u * PITCH] = vec4u(i.y, j.y, k.y, l.y);
  x_digits[at + 8u * PITCH] = vec4u(i.z, j.z, k.z, l.z);
}

fn tile_plane(at: u32) -> Quarters {
  return Quarters(x_digits[at], x_digits[at + PITCH], x_digits[at + 2u * PITCH], x_digits[at + 3u * PITCH]);
}
fn tile_scales(at: u32) -> vec4f {
  return vec4f(x_scales[at], x_scales[at + PITCH], x_scales[at + 2u * PITCH], x_scales[at + 3u * PITCH]);
}

fn bring_chunk(x: u32, first: u32, end: u32, cols: u32, thread: u32) {
  for (var n = thread; n < (end - first) * 4u; n += WG) {
    let at = x + quarter_place(first * 4u + n) * 16u;
    tile_fours(n * 4u, product_four(at, 4u), product_four(at + 4u, 4u), product_four(at + 8u, 4u), product_four(at + 12u, 4u));
  }
}

fn multiply_unit(words: array<UnitWords, ROWS>, u: u32, at: u32, sums: ptr<function, array<f32, ROWS>>) {
  let x = UnitDigits(tile_plane(at), tile_plane(at + 4u * PITCH), tile_plane(at + 8u * PITCH), tile_scales(at + 4u * PITCH),
                     tile_scales(at));
  for (var r = 0u; r < ROWS; r++) { (*sums)[r] += unit_dot(words[r], u, x); }
}

// Products by integers. Sixteen numbers of the vector, a quarter of a unit, are brought near 2^22 by a power of two and
// rounded; as three digits of base 256 they are what dot4I8Packed multiplies with four weights at a time. Rounding loses
// 2^-22 of the largest of them at most, no more than sums of floats do. A lib_words_*.wgsl says how a type is read:
// unit_words(row, u, part), as in lib_product.wgsl, and unit_quarters(words, part), what they are before they are scaled. A
// lib_digits_*.wgsl has quarter_place(n), the quarter of the vector that is the n-th when units lie one after another, and
// unit_dot(words, part, x). Before comes scales_of(word), two half floats, subnormal ones too; and whether quarters are PAIRED:
// then neighbouring threads bring the quarters they have, both of one unit, by one power of two, so that 32 weights with one
// scale are one sum. of_other(v) is what the neighbour has; where quarters are not paired, nothing.
struct UnitDigits { high: Quarters, middle: Quarters, low: Quarters, sums: vec4f, factors: vec4f }

fn most4(v: vec4f) -> f32 { return max(max(abs(v.x), abs(v.y)), max(abs(v.z), abs(v.w))); }

// The exponent's bits of the power of two that brings the largest of the numbers near 2^22, so that it is exact.
fn digits_up(most: f32) -> u32 { return clamp(275u - (bitcast<u32>(max(most, of_other(most))) >> 23u), 1u, 253u); }

// Its inverse, whose bits are 254 less those. Where the numbers' sum is no number, nothing they are multiplied with is one.
fn digits_down(up: u32, sum: f32) -> f32 {
  let none = (bitcast<u32>(sum + of_other(sum)) & 0x7f800000u) == 0x7f800000u;
  return bitcast<f32>(select((254u - up) << 23u, 0x7fc00000u, none));
}

// Four integers as digits of base 256, from -128 to 127: high, middle, low.
fn digits(four: vec4f, factor: f32) -> vec3u {
  let t = bitcast<vec4u>(fma(four, vec4f(factor), vec4f(12582912.0))) + vec4u(0x408080u);
  let outer = (t.xz & vec2u(0xff00ffu)) | ((t.yw & vec2u(0xff00ffu)) << vec2u(8u));
  let inner = ((t.xz >> vec2u(8u)) & vec2u(0xffu)) | (t.yw & vec2u(0xff00u));
  return vec3u((outer.x >> 16u) | (outer.y & 0xffff0000u), inner.x | (inner.y << 16u), (outer.x & 0xffffu) | (outer.y << 16u)) ^
         vec3u(0x80808080u);
}

// A quarter, from the four `first` of the vector's tile on, as digits. The product says how many units are KEPT and where:
// keep_quarter(). All threads come here, as neighbours agree on a power of two, those beyond too.
fn tile_fours(first: u32, a: vec4f, b: vec4f, c: vec4f, d: vec4f) {
  let up = digits_up(max(max(most4(a), most4(b)), max(most4(c), most4(d))));
  let sum = total((a + b) + (c + d));
  let down = digits_down(up, sum);
  if (first >= KEPT * 16u) { return; }
  let factor = bitcast<f32>(up << 23u);
  let i = digits(a, factor);
  let j = digits(b, factor);
  let k = digits(c, factor);
  let l = digits(d, factor);
  keep_quarter(first / 16u, first / 4u % 4u, vec4u(i.x, j.x, k.x, l.x), vec4u(i.y, j.y, k.y, l.y),
               vec4u(i.z, j.z, k.z, l.z), down, sum);
}

// Sixteen weights, from -128 to 127, times sixteen numbers. Each sum begins with 1.5 * 2^23, so that its bits are those of a float.
const NONE: i32 = 0x4b400000;
fn add_dots(sum: i32, q: vec4u, x: vec4u) -> i32 {
  return dot4I8Packed(q.w, x.w) + (dot4I8Packed(q.z, x.z) + (dot4I8Packed(q.y, x.y) + (dot4I8Packed(q.x, x.x) + sum)));
}
fn joined_digits(high: i32, middle: i32, low: i32) -> f32 {
  let f = bitcast<vec3f>(vec3i(high, middle, low)) - vec3f(12582912.0);
  return fma(f.x, 65536.0, fma(f.y, 256.0, f.z));
}
fn quarter_dot(q: vec4u, high: vec4u, middle: vec4u, low: vec4u) -> f32 {
  return joined_digits(add_dots(NONE, q, high), add_dots(NONE, q, middle), add_dots(NONE, q, low));
}

fn quarter_dots(q: Quarters, x: UnitDigits) -> vec4f {
  return vec4f(quarter_dot(q.a, x.high.a, x.middle.a, x.low.a), quarter_dot(q.b, x.high.b, x.middle.b, x.low.b),
               quarter_dot(q.c, x.high.c, x.middle.c, x.low.c), quarter_dot(q.d, x.high.d, x.middle.d, x.low.d));
}

// Of each half of a unit, 32 weights, times its numbers.
fn half_dots(q: Quarters, x: UnitDigits) -> vec2f {
  if (!PAIRED) {
    let dots = quarter_dots(q, x) * x.factors;
    return dots.xz + dots.yw;
  }
  return vec2f(joined_digits(add_dots(add_dots(NONE, q.a, x.high.a), q.b, x.high.b),
                             add_dots(add_dots(NONE, q.a, x.middle.a), q.b, x.middle.b),
                             add_dots(add_dots(NONE, q.a, x.low.a), q.b, x.low.b)),
               joined_digits(add_dots(add_dots(NONE, q.c, x.high.c), q.d, x.high.d),
                             add_dots(add_dots(NONE, q.c, x.middle.c), q.d, x.middle.d),
                             add_dots(add_dots(NONE, q.c, x.low.c), q.d, x.low.d))) * x.factors.xz;
}

// Small integers as floats. GPUs convert integers at a fraction of the rate at which they mask and multiply, so bits are put
// into the mantissa of 2^23, wherever they lie, and a multiplication brings them down; all of it is exact.
const PLACES: vec4f = vec4f(1.0, 0x1p-8f, 0x1p-16f, 0x1p-12f);  // of bytes 0, 1, 2 and, moved down by 12 bits, 3

// The bytes of a word, each below 64, less `zero`, an integer below 64.
fn small4(word: u32, zero: f32) -> vec4f {
  let bits = vec4u(word, word, word, word >> 12u) & vec4u(0x3fu, 0x3f00u, 0x3f0000u, 0x3f000u);
  return fma(bitcast<vec4f>(bits | vec4u(0x4b000000u)), PLACES, -0x1p23f * PLACES - vec4f(zero));
}

// The elements of a four, added.
fn total(four: vec4f) -> f32 { return (four.x + four.y) + (four.z + four.w); }

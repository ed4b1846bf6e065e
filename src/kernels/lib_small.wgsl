// Small integers as floats. GPUs convert integers at a fraction of the rate at which they mask and multiply, so bits are put
// into the mantissa of 2^23, wherever they lie, and a multiplication brings them down; all of it is exact.
// The bits of 2^23 and of 1 come from where a compiler does not look: as values it knows, they would not be held in registers,
// and masking a word and joining it with them would be two instructions and not one.
var<private> bits_2_23: u32;
var<private> bits_1: u32;
fn unit_begin(cols: u32) {
  bits_2_23 = 0x4b000000u | (cols >> 31u);
  bits_1 = 0x3f800000u | (cols >> 31u);
}

const PLACES: vec4f = vec4f(1.0, 0x1p-8f, 0x1p-16f, 0x1p-12f);  // of bytes 0, 1, 2 and, moved down by 12 bits, 3

// The bytes of a word, each below 64, less `zero`, an integer below 64.
fn small4(word: u32, zero: f32) -> vec4f {
  let bits = vec4u(word, word, word, word >> 12u) & vec4u(0x3fu, 0x3f00u, 0x3f0000u, 0x3f000u);
  return fma(bitcast<vec4f>(bits | vec4u(bits_2_23)), PLACES, -0x1p23f * PLACES - vec4f(zero));
}

// The bytes of q, less `zero`, times 16 neighbours of x from the four `first` on; to be added.
fn small_dot(q: vec4u, zero: f32, first: u32, x: ptr<function, array<vec4f, 16>>) -> vec4f {
  var sum = small4(q.x, zero) * (*x)[first];
  sum = fma(small4(q.y, zero), (*x)[first + 1u], sum);
  sum = fma(small4(q.z, zero), (*x)[first + 2u], sum);
  return fma(small4(q.w, zero), (*x)[first + 3u], sum);
}

// The same with bytes that have signs.
fn signed_dot(q: vec4u, first: u32, x: ptr<function, array<vec4f, 16>>) -> vec4f {
  var sum = vec4f(i8x4(q.x)) * (*x)[first];
  sum = fma(vec4f(i8x4(q.y)), (*x)[first + 1u], sum);
  sum = fma(vec4f(i8x4(q.z)), (*x)[first + 2u], sum);
  return fma(vec4f(i8x4(q.w)), (*x)[first + 3u], sum);
}

// The elements of a four, added.
fn total(four: vec4f) -> f32 { return (four.x + four.y) + (four.z + four.w); }

// Of 64 numbers, sixteen each: bytes in the order of memory.
struct Quarters { a: vec4u, b: vec4u, c: vec4u, d: vec4u }

// Small integers of BITS bits in the bytes of a word as floats, put into the upper bits of the mantissa of 1: GPUs
// convert at a fraction of the rate at which they shift. value = (float - SMALL_ZERO) * SMALL_STEP.
const SMALL_ZERO: f32 = 1.0;
const SMALL_STEP: f32 = f32(1u << BITS);
fn small4(word: u32) -> vec4f {
  let moved = (vec4u(word) << vec4u(23u - BITS, 15u - BITS, 7u - BITS, 0u)) >> vec4u(0u, 0u, 0u, 1u + BITS);
  return bitcast<vec4f>((moved & vec4u(((1u << BITS) - 1u) << (23u - BITS))) | vec4u(0x3f800000u));
}

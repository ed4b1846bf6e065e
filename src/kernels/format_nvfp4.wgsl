// NVFP4: S / 2 * FP4[n]. Four scales S of 8 bits @0, for 16 elements each, whose nibbles n are 8 bytes @4: the low ones are the first 8.
const BLOCK: u32 = 64u;
const BLOCK_BYTES: u32 = 36u;

fn weights16(at: u32, r: u32) -> array<vec4f, 4> {
  let q = vec2u(word_at(at + 4u + 8u * r), word_at(at + 8u + 8u * r));
  return float4_16(vec4u(q, q >> vec2u(4u)) & vec4u(0x0f0f0f0fu), 0.5 * float8x4(byte_at(at + r)).x);
}

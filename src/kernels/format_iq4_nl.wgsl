// IQ4_NL: d * NL[n]. d f16 @0, nibbles n @2 as in Q4_0.
const BLOCK: u32 = 32u;
const BLOCK_BYTES: u32 = 18u;

fn weights16(at: u32, r: u32) -> array<vec4f, 4> {
  return nonlinear16(fields16(bytes16_at(at + 2u), 4u * r, 15u), f16_at(at));
}

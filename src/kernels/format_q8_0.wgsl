// Q8_0: d * q. d f16 @0, signed bytes q @2.
const BLOCK: u32 = 32u;
const BLOCK_BYTES: u32 = 34u;

fn weights16(at: u32, r: u32) -> array<vec4f, 4> {
  return signed16(bytes16_at(at + 2u + 16u * r), f16_at(at));
}

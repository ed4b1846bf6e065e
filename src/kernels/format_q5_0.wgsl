// Q5_0: d * ((n | high << 4) - 16). d f16 @0, a high bit for each element @2, nibbles n @6 as in Q4_0.
const BLOCK: u32 = 32u;
const BLOCK_BYTES: u32 = 22u;

fn weights16(at: u32, r: u32) -> array<vec4f, 4> {
  let d = f16_at(at);
  let low = fields16(bytes16_at(at + 6u), 4u * r, 15u);
  let high = bits16(u16_at(at + 2u + 2u * r));
  return affine16(low | (high << vec4u(4u)), d, -16.0 * d);
}

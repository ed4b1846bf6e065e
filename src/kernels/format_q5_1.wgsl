// Q5_1: d * (n | high << 4) + m. d f16 @0, m f16 @2, a high bit for each element @4, nibbles n @8 as in Q4_1.
const BLOCK: u32 = 32u;
const BLOCK_BYTES: u32 = 24u;

fn weights16(at: u32, r: u32) -> array<vec4f, 4> {
  let dm = f16x2(word(at >> 2u));
  let low = fields16(words16_at(at + 8u), 4u * r, 15u);
  let high = bits16(u16_at(at + 4u + 2u * r));
  return affine16(low | (high << vec4u(4u)), dm.x, dm.y);
}

// Q4_1: d * n + m. d f16 @0, m f16 @2, nibbles n @4: the low ones are run 0, the high ones run 1.
const BLOCK: u32 = 32u;
const BLOCK_BYTES: u32 = 20u;

fn weights16(at: u32, r: u32) -> array<vec4f, 4> {
  let dm = f16x2(word(at >> 2u));
  return affine16(fields16(words16_at(at + 4u), 4u * r, 15u), dm.x, dm.y);
}

// Q4_K: d * sc * n - dmin * mn. d f16 @0, dmin f16 @2, 6-bit (sc, mn) for each 32 elements @4, nibbles n @16.
const BLOCK: u32 = 256u;
const BLOCK_BYTES: u32 = 144u;

fn weights16(at: u32, r: u32) -> array<vec4f, 4> {
  let j = r >> 1u;
  let head = words16_at(at);
  let scale = f16x2(head.x) * scale_min_of(head.yzw, j);
  let q = words16_at(at + 16u + 32u * (r >> 2u) + 16u * (r & 1u));
  return affine16(fields16(q, 4u * (j & 1u), 15u), scale.x, -scale.y);
}

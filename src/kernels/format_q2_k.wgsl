// Q2_K: d * (s & 15) * q - dmin * (s >> 4). A byte s for each run @0, 2-bit q @16, d f16 @80, dmin f16 @82.
const BLOCK: u32 = 256u;
const BLOCK_BYTES: u32 = 84u;

fn weights16(at: u32, r: u32) -> array<vec4f, 4> {
  let d = f16x2(word((at + 80u) >> 2u));
  let s = byte_at(at + r);
  let q = words16_at(at + 16u + 32u * (r >> 3u) + 16u * (r & 1u));
  return affine16(fields16(q, r & 6u, 3u), d.x * f32(s & 15u), -d.y * f32(s >> 4u));
}

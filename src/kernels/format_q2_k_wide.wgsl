// Q2_K with four blocks together, d and dmin of each first, so that all parts begin at multiples of 16 bytes: see format_q2_k.wgsl.
const BLOCK: u32 = 1024u;
const BLOCK_BYTES: u32 = 336u;

fn weights16(at: u32, run: u32) -> array<vec4f, 4> {
  let block = run >> 4u;
  let r = run & 15u;
  let own = at + 16u + 80u * block;
  let d = f16x2(word_at(at + 4u * block));
  let s = word_at(own + 4u * (r >> 2u)) >> (8u * (r & 3u));
  let q = words16_at(own + 16u + 32u * (r >> 3u) + 16u * (r & 1u));
  return affine16(fields16(q, r & 6u, 3u), d.x * f32(s & 15u), -d.y * f32((s >> 4u) & 15u));
}

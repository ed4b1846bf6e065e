// Q3_K in blocks of 112 bytes instead of 110, so that all parts begin at multiples of 16: see format_q3_k.wgsl.
const BLOCK: u32 = 256u;
const BLOCK_BYTES: u32 = 112u;

fn weights16(at: u32, r: u32) -> array<vec4f, 4> {
  let tail = words16_at(at + 96u);
  let by = 8u * (r & 3u);
  let s_low = (tail[(r >> 2u) & 1u] >> (by + 4u * (r >> 3u))) & 15u;
  let s_high = (tail.z >> (by + 2u * (r >> 2u))) & 3u;
  let scale = f16x2(tail.w).x * (f32(s_low | (s_high << 4u)) - 32.0);
  let low = fields16(words16_at(at + 32u + 32u * (r >> 3u) + 16u * (r & 1u)), r & 6u, 3u);
  let high = fields16(words16_at(at + 16u * (r & 1u)), r >> 1u, 1u);
  return affine16(low | (high << vec4u(2u)), scale, -4.0 * scale);
}

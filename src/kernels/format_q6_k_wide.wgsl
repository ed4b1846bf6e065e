// Q6_K in blocks of 224 bytes instead of 210, so that all parts begin at multiples of 16: see format_q6_k.wgsl.
const BLOCK: u32 = 256u;
const BLOCK_BYTES: u32 = 224u;

fn weights16(at: u32, r: u32) -> array<vec4f, 4> {
  let h = r >> 3u;         // half of the block
  let g = (r >> 1u) & 3u;  // 32 elements of it
  let l = 16u * (r & 1u);
  let scale = f16x2(word_at(at + 208u)).x * f32(i8x4(word_at(at + 192u + 4u * (r >> 2u)) >> (8u * (r & 3u))).x);
  let low = fields16(words16_at(at + 64u * h + 32u * (g & 1u) + l), 4u * (g >> 1u), 15u);
  let high = fields16(words16_at(at + 128u + 32u * h + l), 2u * g, 3u);
  return centred16(low | (high << vec4u(4u)), scale, 32.0);
}

// Q8_0 with eight blocks together, scales first, so that all bytes begin at multiples of 16: see format_q8_0.wgsl.
const BLOCK: u32 = 256u;
const BLOCK_BYTES: u32 = 272u;

fn weights16(at: u32, r: u32) -> array<vec4f, 4> {
  return signed16(words16_at(at + 16u + 16u * r), f16x2(word_at(at + 4u * (r >> 2u)))[(r >> 1u) & 1u]);
}

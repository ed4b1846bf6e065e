// IQ4_XS: d * (s - 32) * NL[n]. d f16 @0; of s for each 32 elements, high 2 bits @2, low 4 @4; nibbles n @8.
const BLOCK: u32 = 256u;
const BLOCK_BYTES: u32 = 136u;

fn weights16(at: u32, r: u32) -> array<vec4f, 4> {
  let g = r >> 1u;
  let head = word(at >> 2u);
  let s_low = (word((at + 4u) >> 2u) >> (4u * g)) & 15u;
  let s_high = (head >> (16u + 2u * g)) & 3u;
  let scale = f16x2(head).x * (f32(s_low | (s_high << 4u)) - 32.0);
  return nonlinear16(fields16(words16_at(at + 8u + 16u * g), 4u * (r & 1u), 15u), scale);
}

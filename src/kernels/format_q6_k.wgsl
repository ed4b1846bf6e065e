// Q6_K: d * s * ((n | high << 4) - 32). Nibbles n @0, 2-bit high @128, a signed byte s for each run @192, d f16 @208.
const BLOCK: u32 = 256u;
const BLOCK_BYTES: u32 = 210u;

fn weights16(at: u32, r: u32) -> array<vec4f, 4> {
  let h = r >> 3u;         // half of the block
  let g = (r >> 1u) & 3u;  // 32 elements of it
  let l = 16u * (r & 1u);
  let scale = f16_at(at + 208u) * f32(i8x4(byte_at(at + 192u + r)).x);
  let low = fields16(bytes16_at(at + 64u * h + 32u * (g & 1u) + l), 4u * (g >> 1u), 15u);
  let high = fields16(bytes16_at(at + 128u + 32u * h + l), 2u * g, 3u);
  return centred16(low | (high << vec4u(4u)), scale, 32.0);
}

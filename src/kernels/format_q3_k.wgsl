// Q3_K: d * (s - 32) * ((q | high << 2) - 4). High bits @0, 2-bit q @32, 6-bit s for each run @96, d f16 @108.
const BLOCK: u32 = 256u;
const BLOCK_BYTES: u32 = 110u;

fn weights16(at: u32, r: u32) -> array<vec4f, 4> {
  let s_low = (byte_at(at + 96u + (r & 7u)) >> (4u * (r >> 3u))) & 15u;
  let s_high = (byte_at(at + 104u + (r & 3u)) >> (2u * (r >> 2u))) & 3u;
  let scale = f16_at(at + 108u) * (f32(s_low | (s_high << 4u)) - 32.0);
  let low = fields16(bytes16_at(at + 32u + 32u * (r >> 3u) + 16u * (r & 1u)), r & 6u, 3u);
  let high = fields16(bytes16_at(at + 16u * (r & 1u)), r >> 1u, 1u);
  return affine16(low | (high << vec4u(2u)), scale, -4.0 * scale);
}

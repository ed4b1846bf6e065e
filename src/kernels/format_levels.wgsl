// Types of which a weight is d * scale * level, one of sixteen levels, a scale for each sixteen weights, so that all parts begin
// at multiples of 16 bytes: d as a float, then for each 64 weights a byte in each of three words, four scales of 6 bits, more by 32;
// then 16 bytes of nibbles for each 32 weights, the low ones the first half.
const BLOCK: u32 = 256u;
const BLOCK_BYTES: u32 = 144u;

fn weights16(at: u32, r: u32) -> array<vec4f, 4> {
  let head = words16_at(at);
  let bytes = (head.yzw >> vec3u(8u * (r >> 2u))) & vec3u(0xffu);
  let scale = ((bytes.x | (bytes.y << 8u) | (bytes.z << 16u)) >> (6u * (r & 3u))) & 63u;
  let q = fields16(words16_at(at + 16u + 16u * (r >> 1u)), 4u * (r & 1u), 15u);
  return signed16(codes16(q), bitcast<f32>(head.x) * (f32(scale) - 32.0));
}

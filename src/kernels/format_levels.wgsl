// Types of which a weight is d * scale * level, one of sixteen levels, a scale for each sixteen weights, so that all parts begin
// at multiples of 16 bytes: a head with d and the scales (lib_heads_six.wgsl, lib_heads_float8.wgsl), then 16 bytes of nibbles for each
// 32 weights, the low ones the first half.
const BLOCK: u32 = 256u;
const BLOCK_BYTES: u32 = 144u;

fn weights16(at: u32, r: u32) -> array<vec4f, 4> {
  let head = words16_at(at);
  let q = fields16(words16_at(at + 16u + 16u * (r >> 1u)), 4u * (r & 1u), 15u);
  return signed16(codes16(q), head_d(head) * head_scale(head_bits(head, r >> 2u), r & 3u));
}

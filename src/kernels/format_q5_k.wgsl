// Q5_K: d * sc * (n | high << 4) - dmin * mn. Q4_K with high bits @16 (bit j of 32 bytes: elements 32j ...), n @48.
const BLOCK: u32 = 256u;
const BLOCK_BYTES: u32 = 176u;

fn weights16(at: u32, r: u32) -> array<vec4f, 4> {
  let j = r >> 1u;
  let head = words16_at(at);
  let scale = f16x2(head.x) * scale_min_of(head.yzw, j);
  let low = fields16(words16_at(at + 48u + 32u * (r >> 2u) + 16u * (r & 1u)), 4u * (j & 1u), 15u);
  let high = fields16(words16_at(at + 16u + 16u * (r & 1u)), j, 1u);
  return affine16(low | (high << vec4u(4u)), scale.x, -scale.y);
}

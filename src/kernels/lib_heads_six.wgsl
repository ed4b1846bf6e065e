// The head of 256 weights with levels: d as a float, then for each 64 of them a byte in each of three words, four scales of 6 bits,
// more by 32.
fn head_d(head: vec4u) -> f32 { return bitcast<f32>(head.x); }

// The scales of 64 weights, to be taken apart.
fn head_bits(head: vec4u, part: u32) -> u32 {
  let bytes = (head.yzw >> vec3u(8u * (part & 3u))) & vec3u(0xffu);
  return bytes.x | (bytes.y << 8u) | (bytes.z << 16u);
}
fn head_scales(bits: u32) -> vec4f { return vec4f((vec4u(bits) >> vec4u(0u, 6u, 12u, 18u)) & vec4u(63u)) - vec4f(32.0); }
fn head_scale(bits: u32, i: u32) -> f32 { return f32((bits >> (6u * i)) & 63u) - 32.0; }

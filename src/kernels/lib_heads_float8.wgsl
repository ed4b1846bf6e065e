// The head of 256 weights of NVFP4: a scale of 8 bits for each 16. Levels are twice the weights, so d is a half.
fn head_d(head: vec4u) -> f32 { return 0.5; }

// The scales of 64 weights, to be taken apart.
fn head_bits(head: vec4u, part: u32) -> u32 {
  let two = select(head.xy, head.zw, (part & 2u) != 0u);
  return select(two.x, two.y, (part & 1u) != 0u);
}
fn head_scales(bits: u32) -> vec4f { return float8x4(bits); }
fn head_scale(bits: u32, i: u32) -> f32 { return float8x4(bits >> (8u * i)).x; }

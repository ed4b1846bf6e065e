// The tanh form of gelu.
fn gelu(x: f32) -> f32 {
  // tanh overflows on some drivers; beyond 15 it is 1 in single precision.
  let inner = clamp(0.7978845608 * x * (1.0 + 0.044715 * x * x), -15.0, 15.0);
  return 0.5 * x * (1.0 + tanh(inner));
}

fn gelu4(x: vec4f) -> vec4f { return vec4f(gelu(x.x), gelu(x.y), gelu(x.z), gelu(x.w)); }

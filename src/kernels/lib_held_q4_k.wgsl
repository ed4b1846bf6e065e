// Q4_K by integers: words as in lib_unit_q4_k.wgsl.
struct UnitWords { head: vec4u, a: vec4u, b: vec4u }
fn unit_words(row: u32, u: u32) -> UnitWords {
  let at = row / 16u + (u >> 2u) * 9u;
  let own = at + 1u + 2u * (u & 3u);
  return UnitWords(word(at), word(own), word(own + 1u));
}

fn unit_dot(w: UnitWords, u: u32, x: Held) -> f32 {
  const nibbles = vec4u(0x0f0f0f0fu);
  let low = fma(quarter_dot(w.a & nibbles, x.high.a, x.middle.a, x.low.a), x.factors.x,
                quarter_dot(w.b & nibbles, x.high.b, x.middle.b, x.low.b) * x.factors.y);
  let high = fma(quarter_dot((w.a >> vec4u(4u)) & nibbles, x.high.c, x.middle.c, x.low.c), x.factors.z,
                 quarter_dot((w.b >> vec4u(4u)) & nibbles, x.high.d, x.middle.d, x.low.d) * x.factors.w);
  return scaled(w.head, u, low, high, x.sums);
}

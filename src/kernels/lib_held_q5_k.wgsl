// Q5_K by integers: words as in lib_unit_q5_k.wgsl.
struct UnitWords { head: vec4u, more_a: vec4u, more_b: vec4u, a: vec4u, b: vec4u }
fn unit_words(row: u32, u: u32) -> UnitWords {
  let at = row / 16u + (u >> 2u) * 11u;
  let own = at + 3u + 2u * (u & 3u);
  return UnitWords(word(at), word(at + 1u), word(at + 2u), word(own), word(own + 1u));
}

fn unit_dot(w: UnitWords, u: u32, x: Held) -> f32 {
  const nibbles = vec4u(0x0f0f0f0fu);
  const one = vec4u(0x10101010u);
  let more_a = w.more_a >> vec4u(2u * (u & 3u));
  let more_b = w.more_b >> vec4u(2u * (u & 3u));
  let low_a = (w.a & nibbles) | ((more_a << vec4u(4u)) & one);
  let low_b = (w.b & nibbles) | ((more_b << vec4u(4u)) & one);
  let high_a = ((w.a >> vec4u(4u)) & nibbles) | ((more_a << vec4u(3u)) & one);
  let high_b = ((w.b >> vec4u(4u)) & nibbles) | ((more_b << vec4u(3u)) & one);
  let low = fma(quarter_dot(low_a, x.high.a, x.middle.a, x.low.a), x.factors.x,
                quarter_dot(low_b, x.high.b, x.middle.b, x.low.b) * x.factors.y);
  let high = fma(quarter_dot(high_a, x.high.c, x.middle.c, x.low.c), x.factors.z,
                 quarter_dot(high_b, x.high.d, x.middle.d, x.low.d) * x.factors.w);
  return scaled(w.head, u, low, high, x.sums);
}

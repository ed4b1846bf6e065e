// Q6_K by integers: words as in lib_unit_q6_k.wgsl. The 32 that every weight is less comes off the sums.
fn unit_place(n: u32) -> u32 { return n / 32u * 32u + ((n >> 2u) & 3u) * 8u + ((n >> 4u) & 1u) * 4u + (n & 3u); }
struct UnitWords { a: vec4u, b: vec4u, more: vec4u, scales: vec4u, d: u32 }
fn unit_words(row: u32, u: u32) -> UnitWords {
  let at = row / 16u + (u >> 2u) * 14u;
  let half = (u >> 1u) & 1u;
  let place = u & 1u;
  return UnitWords(word(at + 4u * half + place), word(at + 4u * half + place + 2u), word(at + 8u + 2u * half + place),
                   word(at + 12u), word(at + 13u).x);
}

fn unit_dot(w: UnitWords, u: u32, x: Held) -> f32 {
  const nibbles = vec4u(0x0f0f0f0fu);
  const two = vec4u(0x30303030u);
  let eight = select(w.scales.xy, w.scales.zw, (u & 2u) == 2u);
  let s = vec4f(bitcast<vec4i>(eight.xxyy << (vec4u(24u, 8u, 24u, 8u) - 8u * (u & 1u))) >> vec4u(24u));
  let q = vec4f(quarter_dot((w.a & nibbles) | ((w.more << vec4u(4u)) & two), x.high.a, x.middle.a, x.low.a),
                quarter_dot((w.b & nibbles) | ((w.more << vec4u(2u)) & two), x.high.b, x.middle.b, x.low.b),
                quarter_dot(((w.a >> vec4u(4u)) & nibbles) | (w.more & two), x.high.c, x.middle.c, x.low.c),
                quarter_dot(((w.b >> vec4u(4u)) & nibbles) | ((w.more >> vec4u(2u)) & two), x.high.d, x.middle.d, x.low.d));
  return f16x2(w.d).x * total(s * fma(q, x.factors, -32.0 * x.sums));
}

// Q2_K by integers, its words from lib_words_q2_k.wgsl.
fn quarter_place(n: u32) -> u32 { return n / 8u * 8u + (n & 3u) * 2u + ((n >> 2u) & 1u); }

fn unit_dot(w: UnitWords, part: u32, x: UnitDigits) -> f32 {
  let q = quarter_dots(unit_quarters(w, part), x) * x.factors;
  let s = unit_scales(w, part);
  let d = scales_of(w.d);
  return d.x * total(vec4f(s & vec4u(15u)) * q) - d.y * total(vec4f((s >> vec4u(4u)) & vec4u(15u)) * x.sums);
}

// Q8_0 by integers, its words from lib_words_q8_0.wgsl.
fn quarter_place(n: u32) -> u32 { return n; }

fn unit_dot(w: UnitWords, part: u32, x: UnitDigits) -> f32 {
  let q = half_dots(unit_quarters(w, part), x);
  let s = scales_of(w.scales);
  return fma(s.x, q.x, s.y * q.y);
}

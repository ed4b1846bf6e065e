// Q3_K by integers, its words from lib_words_q3_k.wgsl. The 4 that every weight is less comes off the sums.
fn quarter_place(n: u32) -> u32 { return n / 8u * 8u + (n & 3u) * 2u + ((n >> 2u) & 1u); }

fn unit_dot(w: UnitWords, part: u32, x: UnitDigits) -> f32 {
  let q = fma(quarter_dots(unit_quarters(w, part), x), x.factors, -4.0 * x.sums);
  return scales_of(w.tail.w).x * total(unit_scales(w, part) * q);
}

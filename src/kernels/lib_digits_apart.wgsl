// Q3_K and Q6_K by integers, their words from lib_words_q3_k.wgsl and lib_words_q6_k.wgsl. The ZERO that every weight is less comes off
// the sums.
fn quarter_place(n: u32) -> u32 { return n / 8u * 8u + (n & 3u) * 2u + ((n >> 2u) & 1u); }

fn unit_dot(w: UnitWords, part: u32, x: UnitDigits) -> f32 {
  let q = fma(quarter_dots(unit_quarters(w, part), x), x.factors, -ZERO * x.sums);
  return scales_of(unit_d(w)).x * total(unit_scales(w, part) * q);
}

// Types with sixteen levels by integers, their words from lib_words_levels.wgsl.
fn quarter_place(n: u32) -> u32 { return n; }

fn unit_dot(w: UnitWords, part: u32, x: UnitDigits) -> f32 {
  return unit_d(w) * total(unit_scales(w, part) * quarter_dots(unit_quarters(w, part), x) * x.factors);
}

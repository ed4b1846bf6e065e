// Types with blocks of 32 by integers, their words from lib_words_blocks.wgsl.
fn quarter_place(n: u32) -> u32 { return n; }

fn unit_dot(w: UnitWords, part: u32, x: UnitDigits) -> f32 {
  let sums = x.sums.xz + x.sums.yw;
  var q = half_dots(unit_quarters(w, part), x);
  if (ZERO > 0.0) { q -= ZERO * sums; }
  var all = two_scales(w.scales) * q;
  if (HEADS == 2u) { all += two_scales(w.minimums) * sums; }
  return all.x + all.y;
}

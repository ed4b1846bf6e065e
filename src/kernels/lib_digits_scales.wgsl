// Q4_K and Q5_K by integers, their words from lib_words_q4_k.wgsl or lib_words_q5_k.wgsl.
fn quarter_place(n: u32) -> u32 { return n; }

// Two neighbouring scales or minimums, 6 bits each, in the low bytes: of the first four in one word, of the others four bits
// in another and two above the first four.
fn two_of(early: u32, late: u32, part: u32, nibble: u32) -> u32 {
  let by = 16u * (part & 1u);
  let first = (part & 2u) == 0u;
  return ((select(late, early, first) >> (by + select(nibble, 0u, first))) & select(0x0f0fu, 0x3f3fu, first)) |
         ((early >> (by + 2u)) & select(0x3030u, 0u, first));
}

fn unit_dot(w: UnitWords, part: u32, x: UnitDigits) -> f32 {
  let q = half_dots(unit_quarters(w, part), x);
  let s = two_of(w.head.y, w.head.w, part, 0u);
  let m = two_of(w.head.z, w.head.w, part, 4u);
  let bits = vec4u(s, s, m, m) & vec4u(0x3fu, 0x3f00u, 0x3fu, 0x3f00u);
  let f = bitcast<vec4f>(bits | vec4u(bits_2_23)) - vec4f(0x1p23f);
  let d = scales_of(w.head.x);
  let low_sum = x.sums.x + x.sums.y;
  let high_sum = 0x1p-8f * (x.sums.z + x.sums.w);
  let high = fma(q.y, 0x1p-8f / HIGH_TIMES, HIGH_LESS * high_sum);
  return d.x * fma(f.x, q.x, f.y * high) - d.y * fma(f.z, low_sum, f.w * high_sum);
}

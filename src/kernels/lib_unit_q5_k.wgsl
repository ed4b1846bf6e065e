// Products with a unit of Q5_K; its words are in lib_words_q5_k.wgsl.
fn unit_dot(words: UnitWords, part: u32, x: ptr<function, array<vec4f, 16>>, sums: UnitSums) -> f32 {
  let q = unit_quarters(words, part);
  let low = small_dot(q.a, 0.0, 0u, x) + small_dot(q.b, 0.0, 4u, x);
  let high = small_dot(q.c, 0.0, 8u, x) + small_dot(q.d, 0.0, 12u, x);
  return scaled(scale_mins(words.head, part & 3u), vec2f(total(low), total(high)), sums);
}

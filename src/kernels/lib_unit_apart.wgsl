// Products with a unit of Q3_K or Q6_K: four times 16 neighbours, 32 elements apart, each with a scale. Its words, how much more than
// the weight they are (ZERO) and d are in lib_words_q3_k.wgsl and lib_words_q6_k.wgsl.
const UNIT: u32 = 64u;
alias UnitSums = f32;
fn unit_place(n: u32) -> vec2u { return vec2u(n / 32u * 2u + ((n >> 2u) & 1u), ((n >> 3u) & 3u) * 4u + (n & 3u)); }
fn unit_sums(x: ptr<function, array<vec4f, 16>>) -> UnitSums { return 0.0; }

fn part_dot(q: vec4u, first: u32, x: ptr<function, array<vec4f, 16>>) -> f32 {
  return total(small_dot(q, ZERO, first, x));
}

fn unit_dot(words: UnitWords, part: u32, x: ptr<function, array<vec4f, 16>>, sums: UnitSums) -> f32 {
  let q = unit_quarters(words, part);
  let s = unit_scales(words, part);
  return f16x2(unit_d(words)).x * ((s.x * part_dot(q.a, 0u, x) + s.y * part_dot(q.b, 4u, x)) +
                                   (s.z * part_dot(q.c, 8u, x) + s.w * part_dot(q.d, 12u, x)));
}

// Products with a unit of Q3_K; its words are in lib_words_q3_k.wgsl.
const UNIT: u32 = 64u;
alias UnitSums = f32;
fn unit_place(n: u32) -> vec2u { return vec2u(n / 32u * 2u + ((n >> 2u) & 1u), ((n >> 3u) & 3u) * 4u + (n & 3u)); }
fn unit_sums(x: ptr<function, array<vec4f, 16>>) -> UnitSums { return 0.0; }

fn unit_dot(w: UnitWords, part: u32, x: ptr<function, array<vec4f, 16>>, sums: UnitSums) -> f32 {
  let q = unit_quarters(w, part);
  let s = unit_scales(w, part);
  return f16x2(w.tail.w).x * total(s.x * small_dot(q.a, 4.0, 0u, x) + s.y * small_dot(q.b, 4.0, 4u, x) +
                                   s.z * small_dot(q.c, 4.0, 8u, x) + s.w * small_dot(q.d, 4.0, 12u, x));
}

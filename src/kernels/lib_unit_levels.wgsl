// Products with a unit of a type with sixteen levels; its words are in lib_words_levels.wgsl.
const UNIT: u32 = 64u;
alias UnitSums = f32;
fn unit_place(n: u32) -> vec2u { return vec2u(n / 16u, n % 16u); }
fn unit_sums(x: ptr<function, array<vec4f, 16>>) -> UnitSums { return 0.0; }

fn unit_dot(w: UnitWords, part: u32, x: ptr<function, array<vec4f, 16>>, sums: UnitSums) -> f32 {
  let q = unit_quarters(w, part);
  let s = unit_scales(w, part);
  return unit_d(w) * total(s.x * signed_dot(q.a, 0u, x) + s.y * signed_dot(q.b, 4u, x) +
                           s.z * signed_dot(q.c, 8u, x) + s.w * signed_dot(q.d, 12u, x));
}

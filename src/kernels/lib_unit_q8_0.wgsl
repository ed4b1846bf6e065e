// Products with a unit of Q8_0; its words are in lib_words_q8_0.wgsl.
const UNIT: u32 = 64u;
alias UnitSums = f32;
fn unit_place(n: u32) -> vec2u { return vec2u(n / 16u, n % 16u); }
fn unit_sums(x: ptr<function, array<vec4f, 16>>) -> UnitSums { return 0.0; }

fn unit_dot(w: UnitWords, part: u32, x: ptr<function, array<vec4f, 16>>, sums: UnitSums) -> f32 {
  let s = f16x2(w.scales);
  return s.x * total(signed_dot(w.a, 0u, x) + signed_dot(w.b, 4u, x)) + s.y * total(signed_dot(w.c, 8u, x) + signed_dot(w.d, 12u, x));
}

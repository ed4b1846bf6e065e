// Products with a unit of Q8_0; its words are in lib_words_q8_0.wgsl.
const UNIT: u32 = 64u;
alias UnitSums = f32;
fn unit_place(n: u32) -> vec2u { return vec2u(n / 16u, n % 16u); }
fn unit_sums(x: ptr<function, array<vec4f, 16>>) -> UnitSums { return 0.0; }

fn part_dot(q: vec4u, first: u32, x: ptr<function, array<vec4f, 16>>) -> f32 {
  var sum = vec4f(i8x4(q.x)) * (*x)[first];
  sum = fma(vec4f(i8x4(q.y)), (*x)[first + 1u], sum);
  sum = fma(vec4f(i8x4(q.z)), (*x)[first + 2u], sum);
  return total(fma(vec4f(i8x4(q.w)), (*x)[first + 3u], sum));
}

fn unit_dot(w: UnitWords, part: u32, x: ptr<function, array<vec4f, 16>>, sums: UnitSums) -> f32 {
  let s = f16x2(w.scales);
  return s.x * (part_dot(w.a, 0u, x) + part_dot(w.b, 4u, x)) + s.y * (part_dot(w.c, 8u, x) + part_dot(w.d, 12u, x));
}

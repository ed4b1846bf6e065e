// Products with a unit of Q2_K; its words are in lib_words_q2_k.wgsl.
const UNIT: u32 = 64u;
alias UnitSums = vec4f;
fn unit_place(n: u32) -> vec2u { return vec2u(n / 32u * 2u + ((n >> 2u) & 1u), ((n >> 3u) & 3u) * 4u + (n & 3u)); }

fn unit_sums(x: ptr<function, array<vec4f, 16>>) -> UnitSums {
  return vec4f(total(((*x)[0] + (*x)[1]) + ((*x)[2] + (*x)[3])), total(((*x)[4] + (*x)[5]) + ((*x)[6] + (*x)[7])),
               total(((*x)[8] + (*x)[9]) + ((*x)[10] + (*x)[11])), total(((*x)[12] + (*x)[13]) + ((*x)[14] + (*x)[15])));
}

fn unit_dot(w: UnitWords, part: u32, x: ptr<function, array<vec4f, 16>>, sums: UnitSums) -> f32 {
  let q = unit_quarters(w, part);
  let bits = unit_scales(w, part);
  let s = vec4f(bits & vec4u(15u));
  let d = f16x2(w.d);
  let all = s.x * small_dot(q.a, 0.0, 0u, x) + s.y * small_dot(q.b, 0.0, 4u, x) + s.z * small_dot(q.c, 0.0, 8u, x) +
            s.w * small_dot(q.d, 0.0, 12u, x);
  return d.x * total(all) - d.y * total(vec4f((bits >> vec4u(4u)) & vec4u(15u)) * sums);
}

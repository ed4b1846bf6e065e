// Products with a unit of a type with blocks of 32; its words are in lib_words_blocks.wgsl.
const UNIT: u32 = 64u;
alias UnitSums = vec2f;
fn unit_place(n: u32) -> vec2u { return vec2u(n / 16u, n % 16u); }

// For minimums.
fn unit_sums(x: ptr<function, array<vec4f, 16>>) -> UnitSums {
  if (HEADS < 2u) { return vec2f(); }
  let low = (((*x)[0] + (*x)[1]) + ((*x)[2] + (*x)[3])) + (((*x)[4] + (*x)[5]) + ((*x)[6] + (*x)[7]));
  let high = (((*x)[8] + (*x)[9]) + ((*x)[10] + (*x)[11])) + (((*x)[12] + (*x)[13]) + ((*x)[14] + (*x)[15]));
  return vec2f(total(low), total(high));
}

fn part_dot(q: vec4u, first: u32, x: ptr<function, array<vec4f, 16>>) -> vec4f {
  if (SIGNED) { return signed_dot(q, first, x); }
  return small_dot(q, ZERO, first, x);
}

fn unit_dot(w: UnitWords, part: u32, x: ptr<function, array<vec4f, 16>>, sums: UnitSums) -> f32 {
  let q = unit_quarters(w, part);
  var all = two_scales(w.scales) * vec2f(total(part_dot(q.a, 0u, x) + part_dot(q.b, 4u, x)),
                                         total(part_dot(q.c, 8u, x) + part_dot(q.d, 12u, x)));
  if (HEADS == 2u) { all += two_scales(w.minimums) * sums; }
  return all.x + all.y;
}

// Units of the K-quants whose blocks have 8 scales and minimums: 32 neighbours with one pair of them, then 32 with another.
const UNIT: u32 = 64u;
alias UnitSums = vec2f;
fn unit_place(n: u32) -> vec2u { return vec2u(n / 16u, n % 16u); }

fn unit_sums(x: ptr<function, array<vec4f, 16>>) -> UnitSums {
  let low = (((*x)[0] + (*x)[1]) + ((*x)[2] + (*x)[3])) + (((*x)[4] + (*x)[5]) + ((*x)[6] + (*x)[7]));
  let high = (((*x)[8] + (*x)[9]) + ((*x)[10] + (*x)[11])) + (((*x)[12] + (*x)[13]) + ((*x)[14] + (*x)[15]));
  return vec2f(total(low), total(high));
}

// Pairs 2 * part and 2 * part + 1 of the 6-bit scales and minimums in the last 12 bytes of a head, times d: of the first
// the scale, the minimum, then of the second.
fn scale_mins(head: vec4u, part: u32) -> vec4f {
  let s = head.yzw >> vec3u(16u * (part & 1u));
  let early = s.xy & vec2u(0x3f3fu);
  let late = (vec2u(s.z, s.z >> 4u) & vec2u(0x0f0fu)) | ((s.xy >> vec2u(2u)) & vec2u(0x3030u));
  let pairs = select(late, early, part < 2u);
  let bits = vec4u(pairs, pairs) & vec4u(0x3fu, 0x3fu, 0x3f00u, 0x3f00u);
  const places = vec4f(1.0, 1.0, 0x1p-8f, 0x1p-8f);
  return fma(bitcast<vec4f>(bits | vec4u(bits_2_23)), places, -0x1p23f * places) * f16x2(head.x).xyxy;
}

// From the sums of q * x over both halves.
fn scaled(scales: vec4f, q: vec2f, sums: UnitSums) -> f32 {
  return (scales.x * q.x - scales.y * sums.x) + (scales.z * q.y - scales.w * sums.y);
}

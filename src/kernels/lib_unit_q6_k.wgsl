// Q6_K in blocks of 224 bytes, where a word has 16 bytes: 8 words with low nibbles and high ones, 4 with two more bits,
// scales, d. A unit is one word of these bits: four times 16 neighbours, 32 elements apart.
const UNIT: u32 = 64u;
alias UnitSums = f32;
fn unit_place(n: u32) -> vec2u { return vec2u(n / 32u * 2u + ((n >> 2u) & 1u), ((n >> 3u) & 3u) * 4u + (n & 3u)); }
fn unit_sums(x: ptr<function, array<vec4f, 16>>) -> UnitSums { return 0.0; }

fn part_dot(q: vec4u, first: u32, x: ptr<function, array<vec4f, 16>>) -> f32 {
  return total(small_dot(q, 32.0, first, x));
}

struct UnitWords { a: vec4u, b: vec4u, more: vec4u, scales: vec4u, d: u32 }
fn unit_words(row: u32, u: u32) -> UnitWords {
  let at = row / 16u + (u >> 2u) * 14u;
  let half = (u >> 1u) & 1u;
  let place = u & 1u;
  return UnitWords(word(at + 4u * half + place), word(at + 4u * half + place + 2u), word(at + 8u + 2u * half + place),
                   word(at + 12u), word(at + 13u).x);
}

fn unit_dot(words: UnitWords, u: u32, x: ptr<function, array<vec4f, 16>>, sums: UnitSums) -> f32 {
  let place = u & 1u;
  let a = words.a;
  let b = words.b;
  let more = words.more;
  const nibbles = vec4u(0x0f0f0f0fu);
  const two = vec4u(0x30303030u);
  let eight = select(words.scales.xy, words.scales.zw, (u & 2u) == 2u);
  let s = vec4f(bitcast<vec4i>(eight.xxyy << (vec4u(24u, 8u, 24u, 8u) - 8u * place)) >> vec4u(24u));
  return f16x2(words.d).x * ((s.x * part_dot((a & nibbles) | ((more << vec4u(4u)) & two), 0u, x) +
               s.y * part_dot((b & nibbles) | ((more << vec4u(2u)) & two), 4u, x)) +
              (s.z * part_dot(((a >> vec4u(4u)) & nibbles) | (more & two), 8u, x) +
               s.w * part_dot(((b >> vec4u(4u)) & nibbles) | ((more >> vec4u(2u)) & two), 12u, x)));
}

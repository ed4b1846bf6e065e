// A unit of Q6_K in blocks of 224 bytes, where a word has 16 bytes: 8 words with low nibbles and high ones, 4 with two more
// bits, scales, d. A unit is one word of these bits: four times 16 neighbours, 32 elements apart.
struct UnitWords { a: vec4u, b: vec4u, more: vec4u, scales: vec4u, d: u32 }
fn unit_words(row: u32, u: u32, part: u32) -> UnitWords {
  let at = row / 16u + (u >> 2u) * 14u;
  let half = (part >> 1u) & 1u;
  let place = part & 1u;
  return UnitWords(word(at + (4u * half + place)), word(at + (4u * half + place + 2u)), word(at + (8u + 2u * half + place)),
                   word(at + 12u), word(at + 13u).x);
}

fn unit_d(w: UnitWords) -> u32 { return w.d; }

// Its weights before they are scaled, and more by ZERO, sixteen neighbours each.
const ZERO = 32.0;
fn unit_quarters(w: UnitWords, part: u32) -> Quarters {
  const nibbles = vec4u(0x0f0f0f0fu);
  const two = vec4u(0x30303030u);
  return Quarters((w.a & nibbles) | ((w.more << vec4u(4u)) & two), (w.b & nibbles) | ((w.more << vec4u(2u)) & two),
                  ((w.a >> vec4u(4u)) & nibbles) | (w.more & two),
                  ((w.b >> vec4u(4u)) & nibbles) | ((w.more >> vec4u(2u)) & two));
}

// The scales of these, to be multiplied with d.
fn unit_scales(w: UnitWords, part: u32) -> vec4f {
  let eight = select(w.scales.xy, w.scales.zw, (part & 2u) == 2u);
  return vec4f(bitcast<vec4i>(eight.xxyy << (vec4u(24u, 8u, 24u, 8u) - 8u * (part & 1u))) >> vec4u(24u));
}

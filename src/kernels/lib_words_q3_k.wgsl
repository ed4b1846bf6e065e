// A unit of Q3_K in blocks of 112 bytes, where a word has 16 bytes: 2 words with third bits, 4 with two bits each, a tail: 12 bytes of scales,
// d. A unit is one of the four: four times 16 neighbours, 32 elements apart.
struct UnitWords { third: vec4u, two: vec4u, tail: vec4u }
fn unit_words(row: u32, u: u32, part: u32) -> UnitWords {
  let at = row / 16u + (u >> 2u) * 7u;
  return UnitWords(word(at + (part & 1u)), word(at + (2u + (part & 3u))), word(at + 6u));
}

fn unit_d(w: UnitWords) -> u32 { return w.tail.w; }

// Its weights before they are scaled, and more by ZERO, sixteen neighbours each.
const ZERO = 4.0;
fn unit_quarters(w: UnitWords, part: u32) -> Quarters {
  const two = vec4u(0x03030303u);
  const four = vec4u(0x04040404u);
  let third = w.third >> vec4u(2u * (part & 2u));
  return Quarters((w.two & two) | ((third << vec4u(2u)) & four), ((w.two >> vec4u(2u)) & two) | ((third << vec4u(1u)) & four),
                  ((w.two >> vec4u(4u)) & two) | (third & four), ((w.two >> vec4u(6u)) & two) | ((third >> vec4u(1u)) & four));
}

// The scales of these, to be multiplied with d: four bits of each are in the first two words of the tail, two in the third.
fn unit_scales(w: UnitWords, part: u32) -> vec4f {
  let by = vec4u(0u, 16u, 0u, 16u) + (8u * (part & 1u) + 2u * (part & 2u));
  let low = (w.tail.xxyy >> by) & vec4u(15u);
  let high = (w.tail.zzzz >> (by + vec4u(0u, 0u, 2u, 2u))) & vec4u(3u);
  return vec4f(low | (high << vec4u(4u))) - vec4f(32.0);
}

// A unit of Q4_K, where a word has 16 bytes: a block is a head and 4 times two words, low and high nibbles of a unit.
struct UnitWords { head: vec4u, a: vec4u, b: vec4u }
fn unit_words(row: u32, u: u32, part: u32) -> UnitWords {
  let at = row / 16u + (u >> 2u) * 9u;
  let own = at + (1u + 2u * (part & 3u));
  return UnitWords(word(at), word(own), word(own + 1u));
}

// Its weights before they are scaled, sixteen neighbours each. High nibbles stay where they are, 8 less, so that they are
// signed bytes: (weight - 8) * 16.
const HIGH_TIMES: f32 = 16.0;
const HIGH_LESS: f32 = 8.0;
fn unit_quarters(w: UnitWords, part: u32) -> Quarters {
  const nibbles = vec4u(0x0f0f0f0fu);
  const high = vec4u(0xf0f0f0f0u);
  const eights = vec4u(0x80808080u);
  return Quarters(w.a & nibbles, w.b & nibbles, (w.a & high) ^ eights, (w.b & high) ^ eights);
}

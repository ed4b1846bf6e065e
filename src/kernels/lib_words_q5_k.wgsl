// A unit of Q5_K, where a word has 16 bytes: as Q4_K, with two words of fifth bits after the head, two bits for each unit.
struct UnitWords { head: vec4u, more_a: vec4u, more_b: vec4u, a: vec4u, b: vec4u }
fn unit_words(row: u32, u: u32, part: u32) -> UnitWords {
  let at = row / 16u + (u >> 2u) * 11u;
  let own = at + (3u + 2u * (part & 3u));
  return UnitWords(word(at), word(at + 1u), word(at + 2u), word(own), word(own + 1u));
}

// Its weights before they are scaled, sixteen neighbours each.
const HIGH_TIMES: f32 = 1.0;
const HIGH_LESS: f32 = 0.0;
fn unit_quarters(w: UnitWords, part: u32) -> Quarters {
  const nibbles = vec4u(0x0f0f0f0fu);
  const one = vec4u(0x10101010u);
  let more_a = w.more_a >> vec4u(2u * (part & 3u));
  let more_b = w.more_b >> vec4u(2u * (part & 3u));
  return Quarters((w.a & nibbles) | ((more_a << vec4u(4u)) & one), (w.b & nibbles) | ((more_b << vec4u(4u)) & one),
                  ((w.a >> vec4u(4u)) & nibbles) | ((more_a << vec4u(3u)) & one),
                  ((w.b >> vec4u(4u)) & nibbles) | ((more_b << vec4u(3u)) & one));
}

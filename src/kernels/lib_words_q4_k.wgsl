// A unit of Q4_K, where a word has 16 bytes: a block is a head and 4 times two words, low and high nibbles of a unit.
struct UnitWords { head: vec4u, a: vec4u, b: vec4u }
fn unit_words(row: u32, u: u32) -> UnitWords {
  let at = row / 16u + (u >> 2u) * 9u;
  let own = at + 1u + 2u * (u & 3u);
  return UnitWords(word(at), word(own), word(own + 1u));
}

// Its weights before they are scaled, sixteen neighbours each.
fn unit_quarters(w: UnitWords, u: u32) -> Quarters {
  const nibbles = vec4u(0x0f0f0f0fu);
  return Quarters(w.a & nibbles, w.b & nibbles, (w.a >> vec4u(4u)) & nibbles, (w.b >> vec4u(4u)) & nibbles);
}

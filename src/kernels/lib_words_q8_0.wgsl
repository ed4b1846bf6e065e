// A unit of Q8_0 with eight blocks together, where a word has 16 bytes: a word of scales, 16 of weights. A unit is two blocks.
struct UnitWords { scales: u32, a: vec4u, b: vec4u, c: vec4u, d: vec4u }
fn unit_words(row: u32, u: u32, part: u32) -> UnitWords {
  let at = row / 16u + (u >> 2u) * 17u;
  let own = at + (1u + 4u * (part & 3u));
  return UnitWords(word(at)[part & 3u], word(own), word(own + 1u), word(own + 2u), word(own + 3u));
}

fn unit_quarters(w: UnitWords, part: u32) -> Quarters { return Quarters(w.a, w.b, w.c, w.d); }

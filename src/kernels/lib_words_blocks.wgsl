// A unit of a type with blocks of 32, where a word has 16 bytes, see format_blocks.wgsl: two blocks.
struct UnitWords { scales: u32, minimums: u32, fifths: vec4u, more_fifths: vec4u, a: vec4u, b: vec4u }
fn unit_words(row: u32, u: u32, part: u32) -> UnitWords {
  let at = row / 16u + (u >> 2u) * (HEADS + FIFTHS + 8u);
  let own = at + (HEADS + FIFTHS + 2u * (part & 3u));
  var w = UnitWords(word(at)[part & 3u], 0u, vec4u(), vec4u(), word(own), word(own + 1u));
  if (HEADS == 2u) { w.minimums = word(at + 1u)[part & 3u]; }
  if (FIFTHS == 2u) {
    w.fifths = word(at + HEADS);
    w.more_fifths = word(at + (HEADS + 1u));
  }
  return w;
}

// Its weights before they are scaled, sixteen neighbours each.
fn unit_quarters(w: UnitWords, part: u32) -> Quarters {
  const nibbles = vec4u(0x0f0f0f0fu);
  const one = vec4u(0x10101010u);
  var q = Quarters(w.a & nibbles, (w.a >> vec4u(4u)) & nibbles, w.b & nibbles, (w.b >> vec4u(4u)) & nibbles);
  if (FIFTHS == 2u) {
    let first = w.fifths >> vec4u(2u * (part & 3u));
    let second = w.more_fifths >> vec4u(2u * (part & 3u));
    q = Quarters(q.a | ((first << vec4u(4u)) & one), q.b | ((second << vec4u(4u)) & one),
                 q.c | ((first << vec4u(3u)) & one), q.d | ((second << vec4u(3u)) & one));
  }
  return Quarters(codes16(q.a), codes16(q.b), codes16(q.c), codes16(q.d));
}

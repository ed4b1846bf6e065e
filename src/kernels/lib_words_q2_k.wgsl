// A unit of Q2_K with four blocks together, where a word has 16 bytes: a word with d and dmin of each; of a block a word of scales, 4 of
// weights. A unit is one of these: four times 16 neighbours, 32 elements apart.
struct UnitWords { d: u32, scales: vec4u, q: vec4u }
fn unit_words(row: u32, u: u32, part: u32) -> UnitWords {
  let at = row / 16u + (u >> 4u) * 21u;
  let own = at + (1u + 5u * ((u >> 2u) & 3u));
  return UnitWords(word(at)[(u >> 2u) & 3u], word(own), word(own + (1u + (part & 3u))));
}

// Its weights before they are scaled, sixteen neighbours each.
fn unit_quarters(w: UnitWords, part: u32) -> Quarters {
  const two = vec4u(0x03030303u);
  return Quarters(w.q & two, (w.q >> vec4u(2u)) & two, (w.q >> vec4u(4u)) & two, (w.q >> vec4u(6u)) & two);
}

// The scales of these in the low nibbles, the minimums in the high ones, to be multiplied with d and dmin.
fn unit_scales(w: UnitWords, part: u32) -> vec4u {
  let eight = select(w.scales.xy, w.scales.zw, (part & 2u) == 2u);
  return eight.xxyy >> (vec4u(0u, 16u, 0u, 16u) + 8u * (part & 1u));
}

// A unit of a type with sixteen levels, where a word has 16 bytes, see format_levels.wgsl.
struct UnitWords { head: vec4u, a: vec4u, b: vec4u }
fn unit_words(row: u32, u: u32, part: u32) -> UnitWords {
  let at = row / 16u + (u >> 2u) * 9u;
  let own = at + (1u + 2u * (part & 3u));
  return UnitWords(word(at), word(own), word(own + 1u));
}

// Its weights before they are scaled, sixteen neighbours each.
fn unit_quarters(w: UnitWords, part: u32) -> Quarters {
  const nibbles = vec4u(0x0f0f0f0fu);
  return Quarters(codes16(w.a & nibbles), codes16((w.a >> vec4u(4u)) & nibbles),
                  codes16(w.b & nibbles), codes16((w.b >> vec4u(4u)) & nibbles));
}

// The scales of these, to be multiplied with d.
fn unit_scales(w: UnitWords, part: u32) -> vec4f { return head_scales(head_bits(w.head, part)); }
fn unit_d(w: UnitWords) -> f32 { return head_d(w.head); }

// Q5_K, where a word has 16 bytes: as Q4_K, with two words of fifth bits after the head, two bits for each unit.
struct UnitWords { head: vec4u, more_a: vec4u, more_b: vec4u, a: vec4u, b: vec4u }
fn unit_words(row: u32, u: u32) -> UnitWords {
  let at = row / 16u + (u >> 2u) * 11u;
  let part = u & 3u;
  return UnitWords(word(at), word(at + 1u), word(at + 2u), word(at + 3u + 2u * part), word(at + 4u + 2u * part));
}

fn unit_dot(words: UnitWords, u: u32, x: ptr<function, array<vec4f, 16>>, sums: UnitSums) -> f32 {
  let part = u & 3u;
  let a = words.a;
  let b = words.b;
  let more_a = words.more_a >> vec4u(2u * part);
  let more_b = words.more_b >> vec4u(2u * part);
  const nibbles = vec4u(0x0f0f0f0fu);
  const one = vec4u(0x10101010u);
  let low_a = (a & nibbles) | ((more_a << vec4u(4u)) & one);
  let low_b = (b & nibbles) | ((more_b << vec4u(4u)) & one);
  let high_a = ((a >> vec4u(4u)) & nibbles) | ((more_a << vec4u(3u)) & one);
  let high_b = ((b >> vec4u(4u)) & nibbles) | ((more_b << vec4u(3u)) & one);
  let low = small_dot(low_a, 0.0, 0u, x) + small_dot(low_b, 0.0, 4u, x);
  let high = small_dot(high_a, 0.0, 8u, x) + small_dot(high_b, 0.0, 12u, x);
  return scaled(scale_mins(words.head, part), vec2f(total(low), total(high)), sums);
}

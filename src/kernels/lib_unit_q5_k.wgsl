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
  var low = small4(low_a.x, 0.0) * (*x)[0];
  low = fma(small4(low_a.y, 0.0), (*x)[1], low);
  low = fma(small4(low_a.z, 0.0), (*x)[2], low);
  low = fma(small4(low_a.w, 0.0), (*x)[3], low);
  low = fma(small4(low_b.x, 0.0), (*x)[4], low);
  low = fma(small4(low_b.y, 0.0), (*x)[5], low);
  low = fma(small4(low_b.z, 0.0), (*x)[6], low);
  low = fma(small4(low_b.w, 0.0), (*x)[7], low);
  var high = small4(high_a.x, 0.0) * (*x)[8];
  high = fma(small4(high_a.y, 0.0), (*x)[9], high);
  high = fma(small4(high_a.z, 0.0), (*x)[10], high);
  high = fma(small4(high_a.w, 0.0), (*x)[11], high);
  high = fma(small4(high_b.x, 0.0), (*x)[12], high);
  high = fma(small4(high_b.y, 0.0), (*x)[13], high);
  high = fma(small4(high_b.z, 0.0), (*x)[14], high);
  high = fma(small4(high_b.w, 0.0), (*x)[15], high);
  return scaled(scale_mins(words.head, part), vec2f(total(low), total(high)), sums);
}

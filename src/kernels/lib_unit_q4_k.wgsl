// Q4_K, where a word has 16 bytes: a block is a head and 4 times two words, low and high nibbles of a unit.
// 1 + q / 16 of the nibbles that are bits 3 to 6 of each byte: in the upper bits of a mantissa, they cost no conversion. The
// ones are taken off once, with the sum of x.
fn nibbles4(word: u32) -> vec4f {
  let bits = vec4u(word << 16u, word << 8u, word, word >> 8u) & vec4u(0x780000u);
  return bitcast<vec4f>(bits | vec4u(bits_1));
}
fn low4(word: u32) -> vec4f { return nibbles4(word << 3u); }
fn high4(word: u32) -> vec4f { return nibbles4(word >> 1u); }

struct UnitWords { head: vec4u, a: vec4u, b: vec4u }
fn unit_words(row: u32, u: u32) -> UnitWords {
  let at = row / 16u + (u >> 2u) * 9u;
  return UnitWords(word(at), word(at + 1u + 2u * (u & 3u)), word(at + 2u + 2u * (u & 3u)));
}

fn unit_dot(words: UnitWords, u: u32, x: ptr<function, array<vec4f, 16>>, sums: UnitSums) -> f32 {
  let a = words.a;
  let b = words.b;
  var low = low4(a.x) * (*x)[0];
  low = fma(low4(a.y), (*x)[1], low);
  low = fma(low4(a.z), (*x)[2], low);
  low = fma(low4(a.w), (*x)[3], low);
  low = fma(low4(b.x), (*x)[4], low);
  low = fma(low4(b.y), (*x)[5], low);
  low = fma(low4(b.z), (*x)[6], low);
  low = fma(low4(b.w), (*x)[7], low);
  var high = high4(a.x) * (*x)[8];
  high = fma(high4(a.y), (*x)[9], high);
  high = fma(high4(a.z), (*x)[10], high);
  high = fma(high4(a.w), (*x)[11], high);
  high = fma(high4(b.x), (*x)[12], high);
  high = fma(high4(b.y), (*x)[13], high);
  high = fma(high4(b.z), (*x)[14], high);
  high = fma(high4(b.w), (*x)[15], high);
  let q = 16.0 * (vec2f(total(low), total(high)) - sums);
  return scaled(scale_mins(words.head, u & 3u), q, sums);
}

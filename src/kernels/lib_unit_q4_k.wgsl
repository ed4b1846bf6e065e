// Products with a unit of Q4_K; its words are in lib_words_q4_k.wgsl.
// 1 + q / 16 of the nibbles that are bits 3 to 6 of each byte: in the upper bits of a mantissa, they cost no conversion. The
// ones are taken off once, with the sum of x.
fn nibbles4(word: u32) -> vec4f {
  let bits = vec4u(word << 16u, word << 8u, word, word >> 8u) & vec4u(0x780000u);
  return bitcast<vec4f>(bits | vec4u(bits_1));
}

// Of 16 nibbles, 1 + q / 16 times neighbours of x from the four `first` on; to be added.
fn nibbles_dot(q: vec4u, first: u32, x: ptr<function, array<vec4f, 16>>) -> vec4f {
  var sum = nibbles4(q.x) * (*x)[first];
  sum = fma(nibbles4(q.y), (*x)[first + 1u], sum);
  sum = fma(nibbles4(q.z), (*x)[first + 2u], sum);
  return fma(nibbles4(q.w), (*x)[first + 3u], sum);
}

fn unit_dot(words: UnitWords, part: u32, x: ptr<function, array<vec4f, 16>>, sums: UnitSums) -> f32 {
  let low = nibbles_dot(words.a << vec4u(3u), 0u, x) + nibbles_dot(words.b << vec4u(3u), 4u, x);
  let high = nibbles_dot(words.a >> vec4u(1u), 8u, x) + nibbles_dot(words.b >> vec4u(1u), 12u, x);
  let q = 16.0 * (vec2f(total(low), total(high)) - sums);
  return scaled(scale_mins(words.head, part & 3u), q, sums);
}

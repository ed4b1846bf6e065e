// Numbers in the bits of words. Sixteen small integers travel as a vec4u: one in each byte, in the order of memory.

// The half floats of a word. A GPU may take subnormal ones for zero, but scales of K-quants often are subnormal: those
// are made from integers.
fn f16x2(word: u32) -> vec2f {
  let bits = vec2u(word & 0xffffu, word >> 16u);
  let tiny = vec2f(bits & vec2u(0x3ffu)) * 0x1p-24f;
  let signed_tiny = select(tiny, -tiny, bits >= vec2u(0x8000u));
  return select(unpack2x16float(word), signed_tiny, (bits & vec2u(0x7c00u)) == vec2u(0u));
}

// The numbers of a word that are the upper halves of floats.
fn bf16x2(word: u32) -> vec2f { return bitcast<vec2f>(vec2u(word << 16u, word & 0xffff0000u)); }

// The bytes of a word. (unpack4xU8 and unpack4xI8 are a language feature that not every browser has.)
fn u8x4(word: u32) -> vec4u {
  return (vec4u(word) >> vec4u(0u, 8u, 16u, 24u)) & vec4u(0xffu);
}

fn i8x4(word: u32) -> vec4i {
  return bitcast<vec4i>(vec4u(word) << vec4u(24u, 16u, 8u, 0u)) >> vec4u(24u);
}

// Bits [shift, shift + n) of every byte, where `mask` is n ones.
fn fields16(q: vec4u, shift: u32, mask: u32) -> vec4u {
  return (q >> vec4u(shift)) & vec4u(mask * 0x01010101u);
}

// Bit k of `bits` becomes byte k, 0 or 1: the product puts a copy of four bits 7 places on for each byte.
fn bits16(bits: u32) -> vec4u {
  return (((vec4u(bits) >> vec4u(0u, 4u, 8u, 12u)) & vec4u(15u)) * 0x00204081u) & vec4u(0x01010101u);
}

// scale * q + offset, of unsigned bytes.
fn affine16(q: vec4u, scale: f32, offset: f32) -> array<vec4f, 4> {
  return array<vec4f, 4>(
      scale * vec4f(u8x4(q.x)) + offset, scale * vec4f(u8x4(q.y)) + offset,
      scale * vec4f(u8x4(q.z)) + offset, scale * vec4f(u8x4(q.w)) + offset);
}

// scale * (q - zero), of unsigned bytes: for products too long to be exact before the subtraction.
fn centred16(q: vec4u, scale: f32, zero: f32) -> array<vec4f, 4> {
  return array<vec4f, 4>(
      scale * (vec4f(u8x4(q.x)) - zero), scale * (vec4f(u8x4(q.y)) - zero),
      scale * (vec4f(u8x4(q.z)) - zero), scale * (vec4f(u8x4(q.w)) - zero));
}

// scale * q, of signed bytes.
fn signed16(q: vec4u, scale: f32) -> array<vec4f, 4> {
  return array<vec4f, 4>(
      scale * vec4f(i8x4(q.x)), scale * vec4f(i8x4(q.y)),
      scale * vec4f(i8x4(q.z)), scale * vec4f(i8x4(q.w)));
}

// The values of IQ4_NL and IQ4_XS for four nibbles: -127 -104 -83 -65, -49 -35 -22 -10, 1 13 25 38, 53 69 89 113 as
// bytes of words. Selections, because an array indexed at run time may be put in slow memory.
fn nonlinear4(word: u32) -> vec4i {
  let n = u8x4(word);
  let fours = (n & vec4u(4u)) != vec4u(0u);
  let negative = select(vec4u(0xbfad9881u), vec4u(0xf6eaddcfu), fours);
  let positive = select(vec4u(0x26190d01u), vec4u(0x71594535u), fours);
  let entries = select(negative, positive, n >= vec4u(8u));
  return bitcast<vec4i>(entries << (vec4u(24u) - 8u * (n & vec4u(3u)))) >> vec4u(24u);
}

// scale * NL[q], of nibbles in bytes.
fn nonlinear16(q: vec4u, scale: f32) -> array<vec4f, 4> {
  return array<vec4f, 4>(
      scale * vec4f(nonlinear4(q.x)), scale * vec4f(nonlinear4(q.y)),
      scale * vec4f(nonlinear4(q.z)), scale * vec4f(nonlinear4(q.w)));
}

// Twice the values of four 4-bit floats (E2M1) in bytes. The magnitudes fit the nibbles of a word.
fn float4x4(word: u32) -> vec4f {
  let n = u8x4(word);
  let magnitude = vec4f((vec4u(0xc8643210u) >> (4u * (n & vec4u(7u)))) & vec4u(15u));
  return select(magnitude, -magnitude, n >= vec4u(8u));
}

// The unsigned 8-bit floats (E4M3) in the bytes of a word: 2^-9 times the byte below 8; there is no sign, and the largest is 0.
fn float8x4(word: u32) -> vec4f {
  let n = u8x4(word & 0x7f7f7f7fu);
  let normal = bitcast<vec4f>((n << vec4u(20u)) + vec4u(0x3c000000u));
  return select(select(normal, vec4f(n) * 0x1p-9f, n < vec4u(8u)), vec4f(0.0), n == vec4u(0x7fu));
}

// scale * FP4[q], of nibbles in bytes.
fn float4_16(q: vec4u, scale: f32) -> array<vec4f, 4> {
  return array<vec4f, 4>(
      scale * float4x4(q.x), scale * float4x4(q.y),
      scale * float4x4(q.z), scale * float4x4(q.w));
}

// Pair j of the eight 6-bit (scale, min) of Q4_K and Q5_K, of which these are the 12 bytes.
fn scale_min_of(words: vec3u, j: u32) -> vec2f {
  let s = (words >> vec3u(8u * (j & 3u))) & vec3u(0xffu);
  let late = vec2u(s.z & 15u, s.z >> 4u) | ((s.xy >> vec2u(6u)) << vec2u(4u));
  return vec2f(select(late, s.xy & vec2u(63u), j < 4u));
}

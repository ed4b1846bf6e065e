// Types with blocks of 32 weights, eight blocks together, so that all parts begin at multiples of 16 bytes: HEADS times 16 bytes of
// scales, and of minimums where there are two; FIFTHS times 16 bytes, of which byte k has the fifth bits of the k-th weight of each
// block; then 16 bytes of nibbles for each block, the low ones its first half. A weight is scale * (code - ZERO) + minimum.
const BLOCK: u32 = 256u;
const BLOCK_BYTES: u32 = 16u * (HEADS + FIFTHS + 8u);

fn weights16(at: u32, r: u32) -> array<vec4f, 4> {
  let block = r >> 1u;
  var q = fields16(words16_at(at + 16u * (HEADS + FIFTHS + block)), 4u * (r & 1u), 15u);
  if (FIFTHS == 2u) { q |= fields16(words16_at(at + 16u * (HEADS + (r & 1u))), block, 1u) << vec4u(4u); }
  let scale = two_scales(word_at(at + 4u * (block >> 1u)))[block & 1u];
  if (SIGNED) { return signed16(codes16(q), scale); }
  var offset = -ZERO * scale;
  if (HEADS == 2u) { offset = two_scales(word_at(at + 16u + 4u * (block >> 1u)))[block & 1u]; }
  return affine16(codes16(q), scale, offset);
}

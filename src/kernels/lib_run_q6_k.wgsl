// Q6_K in blocks of 224 bytes, where a word has 16 bytes: 8 words with the low and the high nibbles of a run each, 4 with
// two more bits, scales, d.
const BITS: u32 = 6u;
fn run_element(u: u32, i: u32) -> u32 {
  return (u >> 2u) * 128u + (u & 3u) * 16u + (i >> 2u) * 64u + (i & 3u) * 4u;
}

fn run_dot(row: u32, u: u32, slot: u32) -> f32 {
  let at = row / 16u + (u >> 3u) * 14u;
  let unit = u & 7u;  // half of the block, 32 of it, 16 of these
  let q = word(at + unit);
  let more = word(at + 8u + 2u * (unit >> 2u) + (unit & 1u));
  let scales = word(at + 12u);
  let d = f16x2(word(at + 13u).x).x;
  let low = fields16(q, 0u, 15u) | (fields16(more, unit & 2u, 3u) << vec4u(4u));
  let high = fields16(q, 4u, 15u) | (fields16(more, (unit & 2u) + 4u, 3u) << vec4u(4u));
  let sums = x_sums[slot];
  let pair = select(scales.xy, scales.zw, unit >= 4u) >> vec2u(8u * (unit & 3u));
  return d * (f32(i8x4(pair.x).x) * (half_dot(low, 0u, slot, sums.x) - 32.0 * sums.x) +
              f32(i8x4(pair.y).x) * (half_dot(high, 4u, slot, sums.y) - 32.0 * sums.y));
}

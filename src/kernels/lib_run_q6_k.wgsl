// Q6_K as in the file: the low and the high nibbles of 16 bytes, with two more bits each of 16 others.
const BITS: u32 = 6u;
fn run_element(u: u32, i: u32) -> u32 {
  return (u >> 2u) * 128u + (u & 3u) * 16u + (i >> 2u) * 64u + (i & 3u) * 4u;
}

fn run_dot(row: u32, u: u32, slot: u32) -> f32 {
  let at = row + (u >> 3u) * BLOCK_BYTES;
  let unit = u & 7u;  // half of the block, 32 of it, 16 of these
  let q = bytes16_at(at + 16u * unit);
  let more = bytes16_at(at + 128u + 32u * (unit >> 2u) + 16u * (unit & 1u));
  let scale = at + 192u + 8u * (unit >> 2u) + (unit & 3u);
  let d = f16_at(at + 208u);
  let low = fields16(q, 0u, 15u) | (fields16(more, unit & 2u, 3u) << vec4u(4u));
  let high = fields16(q, 4u, 15u) | (fields16(more, (unit & 2u) + 4u, 3u) << vec4u(4u));
  let sums = x_sums[slot];
  return d * (f32(i8x4(byte_at(scale)).x) * (half_dot(low, 0u, slot, sums.x) - 32.0 * sums.x) +
              f32(i8x4(byte_at(scale + 4u)).x) * (half_dot(high, 4u, slot, sums.y) - 32.0 * sums.y));
}

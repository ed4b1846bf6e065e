// Q5_K, where a word has 16 bytes: as Q4_K, with a fifth bit for each weight after the head.
const BITS: u32 = 5u;
fn run_element(u: u32, i: u32) -> u32 { return (u >> 1u) * 64u + (u & 1u) * 16u + (i >> 2u) * 32u + (i & 3u) * 4u; }

fn run_dot(row: u32, u: u32, slot: u32) -> f32 {
  let at = row / 16u + (u >> 3u) * 11u;
  let head = word(at);
  let fifth = word(at + 1u + (u & 1u));
  let q = word(at + 3u + (u & 7u));
  let d = f16x2(head.x);
  let low = d * scale_min_of(head.yzw, u & 6u);
  let high = d * scale_min_of(head.yzw, (u & 6u) + 1u);
  let low_q = fields16(q, 0u, 15u) | (fields16(fifth, u & 6u, 1u) << vec4u(4u));
  let high_q = fields16(q, 4u, 15u) | (fields16(fifth, (u & 6u) + 1u, 1u) << vec4u(4u));
  let sums = x_sums[slot];
  return low.x * half_dot(low_q, 0u, slot, sums.x) - low.y * sums.x +
         high.x * half_dot(high_q, 4u, slot, sums.y) - high.y * sums.y;
}

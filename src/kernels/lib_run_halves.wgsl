// A run of 32: two times 16 neighbours whose weights are small integers in bytes.
const RUN: u32 = 32u;

// The sum of q * x over a half of the run (0 or 4: its first four), q of BITS bits.
fn half_dot(q: vec4u, first: u32, slot: u32, sum: f32) -> f32 {
  let at = first * CHUNK + slot;
  let all = dot(small4(q.x), x_tile[at]) + dot(small4(q.y), x_tile[at + CHUNK]) +
            dot(small4(q.z), x_tile[at + 2u * CHUNK]) + dot(small4(q.w), x_tile[at + 3u * CHUNK]);
  return (all - SMALL_ZERO * sum) * SMALL_STEP;
}

// A run of 16 neighbours, in any format.
const RUN: u32 = 16u;
fn run_element(u: u32, i: u32) -> u32 { return u * 16u + i * 4u; }

fn run_dot(row: u32, u: u32, slot: u32) -> f32 {
  let c = u * 16u;
  let weights = weights16(row + c / BLOCK * BLOCK_BYTES, c % BLOCK / 16u);
  return dot(weights[0], x_tile[slot]) + dot(weights[1], x_tile[CHUNK + slot]) +
         dot(weights[2], x_tile[2u * CHUNK + slot]) + dot(weights[3], x_tile[3u * CHUNK + slot]);
}

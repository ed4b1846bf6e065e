// Products of rows with a vector that every thread reads for itself, 16 columns at a time: short and without barriers,
// which a software adapter compiles and runs much faster than lib_product.wgsl. Every LANES threads share ROWS rows.
const TOGETHER: u32 = WG / LANES * ROWS;  // rows of a workgroup

const TILE: u32 = 0u;  // lib_product.wgsl has one
fn quarter_place(n: u32) -> u32 { return n; }
fn tile_fours(first: u32, a: vec4f, b: vec4f, c: vec4f, d: vec4f) {}

fn row_sums(group: vec3u, rows: array<u32, ROWS>, cols: u32, thread: u32) -> array<f32, ROWS> {
  let x = begin_vector(group, thread);
  var sums: array<f32, ROWS>;
  for (var c = thread % LANES * 16u; c < cols; c += LANES * 16u) {
    var values = array<vec4f, 4>();  // zeros: some drivers keep what the last step left
    for (var i = 0u; i < 4u; i++) {
      if (c + i * 4u < cols) { values[i] = product_four(x + c + i * 4u, cols - c - i * 4u); }
    }
    let block = c / BLOCK * BLOCK_BYTES;
    let run = c % BLOCK / 16u;
    for (var r = 0u; r < ROWS; r++) {
      take(r);
      let weights = weights16(rows[r] + block, run);
      sums[r] += dot(weights[0], values[0]) + dot(weights[1], values[1]) +
                 dot(weights[2], values[2]) + dot(weights[3], values[3]);
    }
  }
  return sums;
}

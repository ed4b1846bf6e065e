// The product of 32 rows of weights with 32 rows of the arena, for kernels of 64 threads: 4 x 4 results per thread.
// Thread t brings in row t of the weights, thread 32 + t row t of the arena.
const TILE: u32 = 32u;
// Runs of 16 columns, column by column, so that a thread reads its four rows or tokens side by side.
var<workgroup> w_tile: array<vec4f, 128>;  // [16][TILE / 4]
var<workgroup> x_tile: array<vec4f, 128>;

// Gives, for each of the thread's tokens (thread / 8 * 4 ...), four rows (thread % 8 * 4 ...). `row` is where the row
// that this thread brings in begins, in bytes of w; `x` is the same for the kernel's own tile_value(x, column). One
// that is not `valid` counts as zeros.
fn tile_product(row: u32, x: u32, valid: bool, cols: u32, thread: u32) -> array<vec4f, 4> {
  let loads = thread % TILE;
  var sums: array<vec4f, 4>;
  for (var c = 0u; c < cols; c += 16u) {
    if (thread < TILE) {
      var weights: array<vec4f, 4>;
      if (valid) { weights = weights16(row + c / BLOCK * BLOCK_BYTES, c % BLOCK / 16u); }
      for (var i = 0u; i < 16u; i++) { w_tile[i * 8u + loads / 4u][loads % 4u] = weights[i / 4u][i % 4u]; }
    } else {
      for (var i = 0u; i < 16u; i++) {
        var value = 0.0;
        if (valid && c + i < cols) { value = tile_value(x, c + i); }
        x_tile[i * 8u + loads / 4u][loads % 4u] = value;
      }
    }
    workgroupBarrier();
    for (var i = 0u; i < 16u; i++) {
      let four_rows = w_tile[i * 8u + thread % 8u];
      let four_tokens = x_tile[i * 8u + thread / 8u];
      sums[0] += four_rows * four_tokens.x;
      sums[1] += four_rows * four_tokens.y;
      sums[2] += four_rows * four_tokens.z;
      sums[3] += four_rows * four_tokens.w;
    }
    workgroupBarrier();
  }
  return sums;
}

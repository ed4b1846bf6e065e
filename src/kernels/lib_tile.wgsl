// The product of TILE_ROWS rows of weights with TILE_TOKENS rows of numbers by TILE_THREADS threads, TILE_STEP columns
// at a time (a multiple of 16). The kernel says where they are: tile_row(i) in bytes of w, tile_x(j), tile_four(x, c)
// for columns c .. c + 3 of such a row, and takes rows i .. i + 3 for row j of x in tile_store(j, i, sums). Rows beyond
// the last are the last one again, which costs less than to ask each time, and are not stored.
// lib_tile_4x4 or lib_tile_8x8 gives the sums of one thread. Number is f32, or f16 where half precision will do.

// Column by column, so that a thread reads its four rows or tokens side by side. Four threads write them, so these are no
// vectors: of a vector, a GPU may write a part as the whole.
var<workgroup> w_tile: array<array<Number, 4>, TILE_STEP * TILE_ROWS / 4u>;
var<workgroup> x_tile: array<array<Number, 4>, TILE_STEP * TILE_TOKENS / 4u>;
fn w_four(at: u32) -> vec4f { return vec4f(f32(w_tile[at][0]), f32(w_tile[at][1]), f32(w_tile[at][2]), f32(w_tile[at][3])); }
fn x_four(at: u32) -> vec4f { return vec4f(f32(x_tile[at][0]), f32(x_tile[at][1]), f32(x_tile[at][2]), f32(x_tile[at][3])); }
const ROW_RUNS: u32 = TILE_STEP / 16u * TILE_ROWS;
const ALL_RUNS: u32 = ROW_RUNS + TILE_STEP / 16u * TILE_TOKENS;

fn tile_bring_weights(n: u32, c: u32) {
  let row = n % TILE_ROWS;
  let k = n / TILE_ROWS * 16u;
  var weights = weights16(tile_row(row) + (c + k) / BLOCK * BLOCK_BYTES, (c + k) % BLOCK / 16u);
  for (var i = 0u; i < 4u; i++) {
    let four = vec4<Number>(weights[i]);
    let at = (k + i * 4u) * (TILE_ROWS / 4u) + row / 4u;
    w_tile[at][row % 4u] = four.x;
    w_tile[at + TILE_ROWS / 4u][row % 4u] = four.y;
    w_tile[at + 2u * (TILE_ROWS / 4u)][row % 4u] = four.z;
    w_tile[at + 3u * (TILE_ROWS / 4u)][row % 4u] = four.w;
  }
}

fn tile_bring_x(n: u32, c: u32, cols: u32) {
  let token = n % TILE_TOKENS;
  let k = n / TILE_TOKENS * 16u;
  let x = tile_x(token);
  for (var i = 0u; i < 4u; i++) {
    var four = vec4<Number>();
    if (c + k + i * 4u < cols) { four = vec4<Number>(tile_four(x, c + k + i * 4u)); }
    let at = (k + i * 4u) * (TILE_TOKENS / 4u) + token / 4u;
    x_tile[at][token % 4u] = four.x;
    x_tile[at + TILE_TOKENS / 4u][token % 4u] = four.y;
    x_tile[at + 2u * (TILE_TOKENS / 4u)][token % 4u] = four.z;
    x_tile[at + 3u * (TILE_TOKENS / 4u)][token % 4u] = four.w;
  }
}

fn tile_product(cols: u32, thread: u32) {
  var sums: array<vec4f, THREAD_SUMS>;
  for (var c = 0u; c < cols; c += TILE_STEP) {
    for (var n = thread; n < ALL_RUNS; n += TILE_THREADS) {
      if (n >= ROW_RUNS) {
        tile_bring_x(n - ROW_RUNS, c, cols);
      } else if (c + n / TILE_ROWS * 16u < cols) {  // beyond, x is zero: weights of the step before will do
        tile_bring_weights(n, c);
      }
    }
    workgroupBarrier();
    for (var k = 0u; k < TILE_STEP; k++) { thread_add(&sums, k, thread); }
    workgroupBarrier();
  }
  thread_store(&sums, thread);
}

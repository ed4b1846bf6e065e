// Products of rows with a vector: every LANES threads of a workgroup share ROWS rows, all of them the vector, CHUNK
// runs of which are in workgroup memory at a time. A lib_run_*.wgsl says what a run is: RUN elements that a thread
// takes at once, run_element(u, i), the first of the i-th four of run u, and run_dot(row, u, slot), its product with
// the row that begins at byte `row`. The kernel gives product_x(at), word(i) of the weights, and take(r): from here on
// word() is asked for the r-th of the ROWS rows.
const TOGETHER: u32 = WG / LANES * ROWS;  // rows of a workgroup
const CHUNK: u32 = 64u;
// Fours of the vector, the i-th of all runs side by side so that neighbouring threads read neighbouring places.
var<workgroup> x_tile: array<vec4f, CHUNK * RUN / 4u>;
var<workgroup> x_sums: array<vec2f, CHUNK>;  // of the first and of the second half of a run

fn row_sums(x: u32, rows: array<u32, ROWS>, cols: u32, thread: u32) -> array<f32, ROWS> {
  let runs = (cols + RUN - 1u) / RUN;
  var sums: array<f32, ROWS>;
  for (var first = 0u; first < runs; first += CHUNK) {
    let count = min(CHUNK, runs - first);
    workgroupBarrier();
    for (var slot = thread; slot < count; slot += WG) {
      var halves = vec2f(0.0);
      for (var i = 0u; i < RUN / 4u; i++) {
        let c = run_element(first + slot, i);
        var four = vec4f(0.0);
        if (c + 3u < cols) {
          four = vec4f(product_x(x + c), product_x(x + c + 1u), product_x(x + c + 2u), product_x(x + c + 3u));
        } else {
          for (var k = 0u; c + k < cols; k++) { four[k] = product_x(x + c + k); }
        }
        x_tile[i * CHUNK + slot] = four;
        halves[i / (RUN / 8u)] += four.x + four.y + four.z + four.w;
      }
      x_sums[slot] = halves;
    }
    workgroupBarrier();
    for (var slot = thread % LANES; slot < count; slot += LANES) {
      for (var r = 0u; r < ROWS; r++) {
        take(r);
        sums[r] += run_dot(rows[r], first + slot, slot);
      }
    }
  }
  return sums;
}

// Sums of ROWS values over the WG threads of a workgroup, with two barriers in all: thread r < ROWS gets the r-th.
var<workgroup> row_slots: array<f32, ROWS * WG>;
var<workgroup> row_parts: array<f32, ROWS * 8>;

fn reduce_rows(sums: array<f32, ROWS>, thread: u32) -> f32 {
  for (var r = 0u; r < ROWS; r++) { row_slots[r * WG + thread] = sums[r]; }
  workgroupBarrier();
  for (var n = thread; n < ROWS * 8u; n += WG) {
    var part = 0.0;
    for (var i = 0u; i < WG / 8u; i++) { part += row_slots[n * (WG / 8u) + i]; }
    row_parts[n] = part;
  }
  workgroupBarrier();
  var sum = 0.0;
  if (thread < ROWS) {
    for (var i = 0u; i < 8u; i++) { sum += row_parts[thread * 8u + i]; }
  }
  return sum;
}

// Sums of ROWS values over every LANES threads of a workgroup, into the totals of lib_totals.wgsl.
const PARTS: u32 = LANES / ROWS;
var<workgroup> row_slots: array<f32, ROWS * WG>;

fn reduce_rows(sums: array<f32, ROWS>, thread: u32) {
  for (var r = 0u; r < ROWS; r++) { row_slots[r * WG + thread] = sums[r]; }
  workgroupBarrier();
  let n = thread / PARTS;
  let first = n % ROWS * WG + n / ROWS * LANES + thread % PARTS * ROWS;
  var part = 0.0;
  for (var i = 0u; i < ROWS; i++) { part += row_slots[first + i]; }
  row_parts[thread] = part;
  join_parts(thread);
}

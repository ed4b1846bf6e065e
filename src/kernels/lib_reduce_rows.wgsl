// Sums of ROWS values over every LANES threads of a workgroup, into the totals of lib_totals.wgsl.
const PARTS: u32 = LANES / ROWS;
var<workgroup> row_slots: array<array<array<f32, ROWS>, WG / ROWS>, ROWS>;

fn reduce_rows(sums: array<f32, ROWS>, thread: u32) {
  for (var r = 0u; r < ROWS; r++) { row_slots[r][thread / ROWS][thread % ROWS] = sums[r]; }
  workgroupBarrier();
  let n = thread / PARTS;
  var part = 0.0;
  for (var i = 0u; i < ROWS; i++) { part += row_slots[n % ROWS][n / ROWS * PARTS + thread % PARTS][i]; }
  row_parts[n][thread % PARTS] = part;
  join_parts(thread);
}

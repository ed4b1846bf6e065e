// Sums of ROWS values over every LANES threads of a workgroup, into `totals` in the order of the rows.
const PARTS: u32 = LANES / ROWS;
var<workgroup> row_slots: array<f32, ROWS * WG>;
var<workgroup> row_parts: array<f32, WG>;
var<workgroup> totals: array<f32, TOGETHER>;

fn reduce_rows(sums: array<f32, ROWS>, thread: u32) {
  for (var r = 0u; r < ROWS; r++) { row_slots[r * WG + thread] = sums[r]; }
  workgroupBarrier();
  let n = thread / PARTS;
  let first = n % ROWS * WG + n / ROWS * LANES + thread % PARTS * ROWS;
  var part = 0.0;
  for (var i = 0u; i < ROWS; i++) { part += row_slots[first + i]; }
  row_parts[thread] = part;
  workgroupBarrier();
  if (thread < TOGETHER) {
    var sum = 0.0;
    for (var i = 0u; i < PARTS; i++) { sum += row_parts[thread * PARTS + i]; }
    totals[thread] = sum;
  }
  workgroupBarrier();
}

fn totals4(n: u32) -> vec4f { return vec4f(totals[n], totals[n + 1u], totals[n + 2u], totals[n + 3u]); }

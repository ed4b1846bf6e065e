// Sums of ROWS values over every LANES threads of a workgroup, into `totals` in the order of the rows. No subgroup has fewer
// than SUBGROUP threads, a power of two and at most LANES; neighbours there are neighbours in the workgroup.
const PARTS: u32 = LANES / SUBGROUP;
var<workgroup> row_parts: array<f32, TOGETHER * PARTS>;
var<workgroup> totals: array<f32, TOGETHER>;

fn reduce_rows(sums: array<f32, ROWS>, thread: u32) {
  for (var r = 0u; r < ROWS; r++) {
    var part = sums[r];
    for (var mask = 1u; mask < SUBGROUP; mask *= 2u) { part += subgroupShuffleXor(part, mask); }
    if (thread % SUBGROUP == 0u) {
      let row = thread / LANES * ROWS + r;
      if (PARTS == 1u) { totals[row] = part; } else { row_parts[row * PARTS + thread % LANES / SUBGROUP] = part; }
    }
  }
  workgroupBarrier();
  if (PARTS > 1u) {
    if (thread < TOGETHER) {
      var sum = 0.0;
      for (var i = 0u; i < PARTS; i++) { sum += row_parts[thread * PARTS + i]; }
      totals[thread] = sum;
    }
    workgroupBarrier();
  }
}

fn totals4(n: u32) -> vec4f { return vec4f(totals[n], totals[n + 1u], totals[n + 2u], totals[n + 3u]); }

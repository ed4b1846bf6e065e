// Sums of ROWS values over every LANES threads of a workgroup, into the totals of lib_totals.wgsl. No subgroup has fewer than
// SUBGROUP threads, a power of two and at most LANES; neighbours there are neighbours in the workgroup.
const PARTS: u32 = LANES / SUBGROUP;

fn reduce_rows(sums: array<f32, ROWS>, thread: u32) {
  for (var r = 0u; r < ROWS; r++) {
    var part = sums[r];
    for (var mask = 1u; mask < SUBGROUP; mask *= 2u) { part += subgroupShuffleXor(part, mask); }
    if (thread % SUBGROUP == 0u) { row_parts[thread / LANES * ROWS + r][thread % LANES / SUBGROUP] = part; }
  }
  join_parts(thread);
}

// Where sums over the threads of a workgroup end: of each of its TOGETHER rows PARTS parts, then one total.
var<workgroup> row_parts: array<array<f32, PARTS>, TOGETHER>;
var<workgroup> totals: array<array<f32, 4>, TOGETHER / 4u>;

fn join_parts(thread: u32) {
  workgroupBarrier();
  if (thread < TOGETHER) {
    var sum = 0.0;
    for (var i = 0u; i < PARTS; i++) { sum += row_parts[thread][i]; }
    totals[thread / 4u][thread % 4u] = sum;
  }
  workgroupBarrier();
}

// Products of the workgroup's rows, of which row_begin(n) gives the n-th, with the vector: into totals.
fn multiply_rows(group: vec3u, cols: u32, thread: u32) {
  var rows: array<u32, ROWS>;
  for (var r = 0u; r < ROWS; r++) { rows[r] = row_begin(thread / LANES * ROWS + r); }
  reduce_rows(row_sums(group, rows, cols, thread), thread);
}

fn totals4(n: u32) -> vec4f {
  let at = n / 4u;
  return vec4f(totals[at][0], totals[at][1], totals[at][2], totals[at][3]);
}

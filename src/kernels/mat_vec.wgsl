// out[t][r] = scale * sum over c of w[r][c] * x[t][c]; x and out within bounds where there are some
// one workgroup per ROWS rows and one token; grid (rows, tokens, folds of the rows)
struct Params {
  x: u32, x_stride: u32, out: u32, out_stride: u32,
  rows: u32, cols: u32, row_bytes: u32, scale: f32,
  in_min: f32, in_max: f32, out_min: f32, out_max: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<u32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let first = (group.x + group.z * groups.x) * ROWS;
  let x = p.x + group.y * p.x_stride;
  var sums: array<f32, ROWS>;
  for (var c = thread * 16u; c < p.cols; c += WG * 16u) {
    var values: array<vec4f, 4>;
    for (var i = 0u; i < 16u; i++) {
      if (c + i < p.cols) { values[i / 4u][i % 4u] = bounded_x(arena[x + c + i]); }
    }
    let block = c / BLOCK * BLOCK_BYTES;
    let run = c % BLOCK / 16u;
    for (var r = 0u; r < ROWS; r++) {
      if (first + r < p.rows) {
        let weights = weights16((first + r) * p.row_bytes + block, run);
        sums[r] += dot(weights[0], values[0]) + dot(weights[1], values[1]) +
                   dot(weights[2], values[2]) + dot(weights[3], values[3]);
      }
    }
  }
  let sum = reduce_rows(sums, thread);
  if (thread < ROWS && first + thread < p.rows) {
    arena[p.out + group.y * p.out_stride + first + thread] = bounded_out(sum * p.scale);
  }
}

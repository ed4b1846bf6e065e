// out[t * used + a] = scales[e] * w[e] times x, e = ids[t][a], for the experts [first, first + count) that are bound
// one workgroup per ROWS rows of one (t, a); grid (rows, t * used + a)
struct Params {
  x: u32, x_stride: u32, out: u32, out_stride: u32, ids: u32, ids_stride: u32,
  used: u32, x_per_token: u32, rows: u32, cols: u32, row_bytes: u32, first: u32, count: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<u32>;
@group(0) @binding(3) var<storage, read> scales: array<f32>;

var<workgroup> chosen: u32;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let t = group.y / p.used;
  if (thread == 0u) { chosen = u32(arena[p.ids + t * p.ids_stride + group.y % p.used]); }
  let expert = workgroupUniformLoad(&chosen);
  if (expert < p.first || expert - p.first >= p.count) { return; }
  let first = group.x * ROWS;
  let x = p.x + select(group.y, t, p.x_per_token == 1u) * p.x_stride;
  var sums: array<f32, ROWS>;
  for (var c = thread * 16u; c < p.cols; c += WG * 16u) {
    var values: array<vec4f, 4>;
    for (var i = 0u; i < 16u; i++) {
      if (c + i < p.cols) { values[i / 4u][i % 4u] = arena[x + c + i]; }
    }
    for (var r = 0u; r < ROWS; r++) {
      if (first + r < p.rows) {
        let row = ((expert - p.first) * p.rows + first + r) * p.row_bytes;
        let weights = weights16(row + c / BLOCK * BLOCK_BYTES, c % BLOCK / 16u);
        sums[r] += dot(weights[0], values[0]) + dot(weights[1], values[1]) +
                   dot(weights[2], values[2]) + dot(weights[3], values[3]);
      }
    }
  }
  let sum = reduce_rows(sums, thread);
  if (thread < ROWS && first + thread < p.rows) {
    arena[p.out + group.y * p.out_stride + first + thread] = sum * scales[expert];
  }
}

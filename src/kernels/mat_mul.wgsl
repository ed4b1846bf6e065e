// out[t][r] = scale * sum over c of w[r][c] * x[t][c]
// one workgroup per tile of 32 rows and 32 tokens, 4 x 4 results per thread; grid (rows, tokens, folds of the rows)
struct Params {
  x: u32, x_stride: u32, out: u32, out_stride: u32,
  rows: u32, cols: u32, tokens: u32, row_bytes: u32, scale: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<u32>;

const TILE: u32 = 32u;
// Runs of 16 columns, column by column, so that a thread reads its four rows or tokens side by side.
var<workgroup> w_tile: array<vec4f, 128>;  // [16][TILE / 4]
var<workgroup> x_tile: array<vec4f, 128>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let first_row = (group.x + group.z * groups.x) * TILE;
  let first_token = group.y * TILE;
  let loads = thread % TILE;  // the row or the token that this thread brings in
  let my_rows = thread % 8u;
  let my_tokens = thread / 8u;
  var sums: array<vec4f, 4>;  // by token: four rows
  for (var c = 0u; c < p.cols; c += 16u) {
    if (thread < TILE) {
      var weights: array<vec4f, 4>;
      if (first_row + loads < p.rows) {
        weights = weights16((first_row + loads) * p.row_bytes + c / BLOCK * BLOCK_BYTES, c % BLOCK / 16u);
      }
      for (var i = 0u; i < 16u; i++) { w_tile[i * 8u + loads / 4u][loads % 4u] = weights[i / 4u][i % 4u]; }
    } else {
      let x = p.x + (first_token + loads) * p.x_stride + c;
      for (var i = 0u; i < 16u; i++) {
        var value = 0.0;
        if (first_token + loads < p.tokens && c + i < p.cols) { value = arena[x + i]; }
        x_tile[i * 8u + loads / 4u][loads % 4u] = value;
      }
    }
    workgroupBarrier();
    for (var i = 0u; i < 16u; i++) {
      let four_rows = w_tile[i * 8u + my_rows];
      let four_tokens = x_tile[i * 8u + my_tokens];
      sums[0] += four_rows * four_tokens.x;
      sums[1] += four_rows * four_tokens.y;
      sums[2] += four_rows * four_tokens.z;
      sums[3] += four_rows * four_tokens.w;
    }
    workgroupBarrier();
  }
  for (var j = 0u; j < 4u; j++) {
    let t = first_token + my_tokens * 4u + j;
    for (var i = 0u; i < 4u; i++) {
      let r = first_row + my_rows * 4u + i;
      if (t < p.tokens && r < p.rows) { arena[p.out + t * p.out_stride + r] = sums[j][i] * p.scale; }
    }
  }
}

// out[t][r] = scale * sum over c of w[r][c] * x[t][c]; x and out within bounds where there are some
// one workgroup per tile of 32 rows and 32 tokens; grid (rows, tokens, folds of the rows)
struct Params {
  x: u32, x_stride: u32, out: u32, out_stride: u32,
  rows: u32, cols: u32, tokens: u32, row_bytes: u32, scale: f32,
  in_min: f32, in_max: f32, out_min: f32, out_max: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<u32>;

fn word(i: u32) -> u32 { return w[i]; }
fn tile_value(x: u32, c: u32) -> f32 { return bounded_x(arena[x + c]); }

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let first_row = (group.x + group.z * groups.x) * TILE;
  let first_token = group.y * TILE;
  let row = first_row + thread % TILE;
  let token = first_token + thread % TILE;
  let valid = select(token < p.tokens, row < p.rows, thread < TILE);
  var sums = tile_product(row * p.row_bytes, p.x + token * p.x_stride, valid, p.cols, thread);
  for (var j = 0u; j < 4u; j++) {
    let t = first_token + thread / 8u * 4u + j;
    for (var i = 0u; i < 4u; i++) {
      let r = first_row + thread % 8u * 4u + i;
      if (t < p.tokens && r < p.rows) { arena[p.out + t * p.out_stride + r] = bounded_out(sums[j][i] * p.scale); }
    }
  }
}

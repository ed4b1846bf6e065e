// out[t][r] = scale * sum over c of w[r][c] * x[t][c]; x and out within bounds where there are some
// one workgroup per tile of rows and tokens, those of the same rows side by side; grid (tokens, rows)
struct Params {
  x: u32, x_stride: u32, out: u32, out_stride: u32,
  rows: u32, cols: u32, tokens: u32, row_bytes: u32, scale: f32,
  in_min: f32, in_max: f32, out_min: f32, out_max: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<Value>;
@group(0) @binding(2) var<storage, read> w: array<Word>;

var<private> first_row: u32;
var<private> first_token: u32;

fn word(i: u32) -> Word { return w[i]; }
fn tile_row(i: u32) -> u32 { return min(first_row + i, p.rows - 1u) * p.row_bytes; }
fn tile_x(j: u32) -> u32 { return p.x + min(first_token + j, p.tokens - 1u) * p.x_stride; }
fn tile_four(x: u32, c: u32) -> vec4f {
  let v = read4(x + c, p.cols - c);
  return vec4f(bounded_x(v.x), bounded_x(v.y), bounded_x(v.z), bounded_x(v.w));
}
fn tile_store(j: u32, i: u32, sums: vec4f) {
  let t = first_token + j;
  let r = first_row + i;
  if (t >= p.tokens || r >= p.rows) { return; }
  let v = sums * p.scale;
  write4(p.out + t * p.out_stride + r, p.rows - r,
         vec4f(bounded_out(v.x), bounded_out(v.y), bounded_out(v.z), bounded_out(v.w)));
}

@compute @workgroup_size(TILE_THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  first_row = group.y * TILE_ROWS;
  first_token = group.x * TILE_TOKENS;
  tile_product(p.cols, thread);
}

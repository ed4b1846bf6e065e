// out[t * used + a] = scales[e] * w[e] times x, e = ids[t][a], for the experts [first, first + count) that are bound
// one workgroup per TOGETHER rows of one (t, a); grid (rows, t * used + a)
struct Params {
  x: u32, x_stride: u32, out: u32, out_stride: u32, ids: u32, ids_stride: u32,
  used: u32, x_per_token: u32, rows: u32, cols: u32, row_bytes: u32, first: u32, count: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<Value>;
@group(0) @binding(2) var<storage, read> w: array<Word>;
@group(0) @binding(3) var<storage, read> scales: array<f32>;

fn word(i: u32) -> Word { return w[i]; }
fn take(n: u32) {}
var<private> first_row: u32;
var<private> last_row: u32;
fn row_begin(n: u32) -> u32 { return min(first_row + n, last_row) * p.row_bytes; }
fn vector_in_tile() -> bool { return false; }
fn begin_vector(group: vec3u, thread: u32) -> u32 {
  return p.x + select(group.y, group.y / p.used, p.x_per_token == 1u) * p.x_stride;
}
fn product_four(at: u32, left: u32) -> vec4f { return read4(at, left); }

var<workgroup> chosen: u32;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let t = group.y / p.used;
  if (thread == 0u) { chosen = u32(read1(p.ids + t * p.ids_stride + group.y % p.used)); }
  let expert = workgroupUniformLoad(&chosen);
  if (expert < p.first || expert - p.first >= p.count) { return; }
  let first = group.x * TOGETHER;
  first_row = (expert - p.first) * p.rows + first;
  last_row = (expert - p.first) * p.rows + p.rows - 1u;
  multiply_rows(group, p.cols, thread);
  let row = first + thread * 4u;
  if (thread < TOGETHER / 4u && row < p.rows) {
    write4(p.out + group.y * p.out_stride + row, p.rows - row, scales[expert] * totals4(thread * 4u));
  }
}

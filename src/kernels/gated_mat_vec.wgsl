// out[t][r] = gelu(gate_scale * gate[r] times x[t]) * up_scale * up[r] times x[t], for two matrices of the same type
// one workgroup per TOGETHER / 2 rows of both and one token; grid (rows, tokens, folds of the rows)
struct Params {
  // Of the vector, see lib_vector_norms.wgsl.
  x: u32, x_stride: u32, added: u32, added_stride: u32, sum: u32, sum_stride: u32, next: u32, next_stride: u32,
  eps: f32, norm_scale: f32, sum_scale: f32, next_eps: f32, next_scale: f32, norms: u32,
  out: u32, out_stride: u32,
  rows: u32, cols: u32, row_bytes: u32, gate_scale: f32, up_scale: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<Value>;
@group(0) @binding(2) var<storage, read> gate: array<Word>;
@group(0) @binding(3) var<storage, read> up: array<Word>;

// Even rows of a workgroup are the gate's, odd ones the other's.
const_assert TOGETHER % 2u == 0u;
var<private> is_up: bool;

fn word(i: u32) -> Word {
  if (is_up) { return up[i]; }
  return gate[i];
}
fn take(n: u32) { is_up = (n & 1u) == 1u; }
var<private> first_row: u32;
fn row_begin(n: u32) -> u32 {
  take(n);
  return min(first_row + n / 2u, p.rows - 1u) * p.row_bytes;
}
fn product_four(at: u32, left: u32) -> vec4f { return vector_four(at, left); }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  first_row = (group.x + group.z * groups.x) * (TOGETHER / 2u);
  multiply_rows(group, p.cols, thread);
  let row = first_row + thread * 4u;
  if (thread < TOGETHER / 8u && row < p.rows) {
    let a = totals4(thread * 8u);
    let b = totals4(thread * 8u + 4u);
    write4(p.out + group.y * p.out_stride + row, p.rows - row,
           gelu4(vec4f(a.xz, b.xz) * p.gate_scale) * vec4f(a.yw, b.yw) * p.up_scale);
  }
}

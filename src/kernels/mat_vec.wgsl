// out[t][r] = scale * sum over c of w[r][c] * x[t][c]; x and out within bounds where there are some; with gate 1 then
// out = gelu(out) * other[t][r], with gate 2 out = gelu(other[t][r]) * out
// one workgroup per TOGETHER rows and one token; grid (rows, tokens, folds of the rows)
struct Params {
  // Of the vector, see lib_vector_norms.wgsl.
  x: u32, x_stride: u32, added: u32, added_stride: u32, sum: u32, sum_stride: u32, next: u32, next_stride: u32,
  eps: f32, norm_scale: f32, sum_scale: f32, next_eps: f32, next_scale: f32, norms: u32,
  out: u32, out_stride: u32, other: u32, other_stride: u32,
  rows: u32, cols: u32, row_bytes: u32, scale: f32, gate: u32,
  in_min: f32, in_max: f32, out_min: f32, out_max: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<Value>;
@group(0) @binding(2) var<storage, read> w: array<Word>;

fn word(i: u32) -> Word { return w[i]; }
fn take(n: u32) {}
var<private> first_row: u32;
// Beyond the last row, the last one again: cheaper than to ask each time.
fn row_begin(n: u32) -> u32 { return min(first_row + n, p.rows - 1u) * p.row_bytes; }
fn product_four(at: u32, left: u32) -> vec4f {
  let v = vector_four(at, left);
  return vec4f(bounded_x(v.x), bounded_x(v.y), bounded_x(v.z), bounded_x(v.w));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  first_row = (group.x + group.z * groups.x) * TOGETHER;
  multiply_rows(group, p.cols, thread);
  let row = first_row + thread * 4u;
  if (thread < TOGETHER / 4u && row < p.rows) {
    let sum = p.scale * totals4(thread * 4u);
    var value = vec4f(bounded_out(sum.x), bounded_out(sum.y), bounded_out(sum.z), bounded_out(sum.w));
    if (p.gate > 0u) {
      let other = read4(p.other + group.y * p.other_stride + row, p.rows - row);
      value = gelu4(select(other, value, p.gate == 1u)) * select(value, other, p.gate == 1u);
    }
    write4(p.out + group.y * p.out_stride + row, p.rows - row, value);
  }
}

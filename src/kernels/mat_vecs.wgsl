// Products of one vector with up to three matrices of the same type: out[t][r] = scale * sum over c of w[r][c] * x[t][c]
// They lie one after the other in one binding, because with one each every load would ask which;
// one workgroup per TOGETHER rows of one matrix and one token; grid (rows of all, tokens, folds of the rows)
struct Params {
  // Of the vector, see lib_vector_norms.wgsl.
  x: u32, x_stride: u32, added: u32, added_stride: u32, sum: u32, sum_stride: u32, next: u32, next_stride: u32,
  eps: f32, norm_scale: f32, sum_scale: f32, next_eps: f32, next_scale: f32, norms: u32,
  cols: u32, row_bytes: u32,
  rows: u32, out: u32, out_stride: u32, scale: f32,
  rows_2: u32, out_2: u32, out_2_stride: u32, scale_2: f32,
  rows_3: u32, out_3: u32, out_3_stride: u32, scale_3: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<Value>;
@group(0) @binding(2) var<storage, read> w: array<Word>;

fn word(i: u32) -> Word { return w[i]; }
fn take(n: u32) {}
var<private> first_row: u32;  // counted through all matrices
var<private> last_row: u32;   // of its matrix
fn row_begin(n: u32) -> u32 { return min(first_row + n, last_row) * p.row_bytes; }
fn product_four(at: u32, left: u32) -> vec4f { return vector_four(at, left); }

struct Part { rows: u32, out: u32, scale: f32 }

fn groups_of(rows: u32) -> u32 { return (rows + TOGETHER - 1u) / TOGETHER; }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  var parts = array<Part, 3>(Part(p.rows, p.out + group.y * p.out_stride, p.scale),
                             Part(p.rows_2, p.out_2 + group.y * p.out_2_stride, p.scale_2),
                             Part(p.rows_3, p.out_3 + group.y * p.out_3_stride, p.scale_3));
  var at = group.x + group.z * groups.x;  // among the workgroups of its matrix
  var before = 0u;  // rows of the matrices before it
  var which = 0u;
  while (which < 2u && at >= groups_of(parts[which].rows)) {
    at -= groups_of(parts[which].rows);
    before += parts[which].rows;
    which++;
  }
  let part = parts[which];
  first_row = before + at * TOGETHER;
  last_row = before + part.rows - 1u;
  if (at * TOGETHER >= part.rows) { return; }  // in the last fold
  multiply_rows(group, p.cols, thread);
  let row = at * TOGETHER + thread * 4u;
  if (thread < TOGETHER / 4u && row < part.rows) {
    write4(part.out + row, part.rows - row, part.scale * totals4(thread * 4u));
  }
}

// out[t * used + a] = scales[e] * w[e] times x, e = ids[t][a], for the experts [first, first + count) that are bound; where GATED,
// an expert's first half of rows is a gate of the second: out = gelu(gate) * that
// the ids are there (lib_chosen.wgsl), or every workgroup chooses them (lib_choose.wgsl) and the first one of a token keeps them
// one workgroup per TOGETHER rows of one (t, a); grid (rows, t * used + a)
struct Params {
  // Of the vector, see lib_vector_norms.wgsl.
  x: u32, x_stride: u32, added: u32, added_stride: u32, sum: u32, sum_stride: u32, next: u32, next_stride: u32,
  eps: f32, norm_scale: f32, sum_scale: f32, next_eps: f32, next_scale: f32, norms: u32,
  out: u32, out_stride: u32, logits: u32, logits_stride: u32, ids: u32, ids_stride: u32, weights: u32, weights_stride: u32,
  used: u32, x_per_token: u32, rows: u32, cols: u32, row_bytes: u32, first: u32, count: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<Value>;
@group(0) @binding(2) var<storage, read> w: array<Word>;
@group(0) @binding(3) var<storage, read> scales: array<f32>;

fn word(i: u32) -> Word { return w[i]; }
fn take(n: u32) {}
// Even rows of a workgroup are a gate's, odd ones what it gates.
const EACH_ROW: u32 = select(1u, 2u, GATED);
var<private> expert_row: u32;
var<private> first_row: u32;
fn row_begin(n: u32) -> u32 {
  let rows = p.rows / EACH_ROW;
  return (expert_row + n % EACH_ROW * rows + min(first_row + n / EACH_ROW, rows - 1u)) * p.row_bytes;
}
fn product_four(at: u32, left: u32) -> vec4f { return vector_four(at, left); }

var<workgroup> chosen: u32;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let t = group.y / p.used;
  let found = chosen_expert(t, group.y % p.used, thread);
  if (thread == 0u) { chosen = found; }
  let expert = workgroupUniformLoad(&chosen);
  if (group.x == 0u && group.y % p.used == 0u && thread == WG - 1u) { keep_choice(t); }
  if (expert < p.first || expert - p.first >= p.count) { return; }
  expert_row = (expert - p.first) * p.rows;
  first_row = group.x * (TOGETHER / EACH_ROW);
  multiply_rows(vec3u(group.x, select(group.y, t, p.x_per_token == 1u), group.z), p.cols, thread);
  let row = first_row + thread * 4u;
  let left = p.rows / EACH_ROW - row;
  if (thread >= TOGETHER / EACH_ROW / 4u || row >= p.rows / EACH_ROW) { return; }
  let out = p.out + group.y * p.out_stride + row;
  if (GATED) {
    let a = totals4(thread * 8u);
    let b = totals4(thread * 8u + 4u);
    write4(out, left, gelu4(scales[expert] * vec4f(a.xz, b.xz)) * (scales[expert] * vec4f(a.yw, b.yw)));
  } else {
    write4(out, left, scales[expert] * totals4(thread * 4u));
  }
}

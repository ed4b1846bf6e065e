// out[n] = scales[e] * w[e] times x, for the pairs n = t * used + a of expert e, for the experts [first, first + count)
// that are bound
// one workgroup per tile of rows of an expert and one run of its pairs, see group_experts; grid (runs, rows)
struct Params {
  x: u32, x_stride: u32, out: u32, out_stride: u32, order: u32, runs: u32,
  used: u32, x_per_token: u32, rows: u32, cols: u32, row_bytes: u32, first: u32, count: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<Value>;
@group(0) @binding(2) var<storage, read> w: array<Word>;
@group(0) @binding(3) var<storage, read> scales: array<f32>;

var<workgroup> chosen: vec3u;  // expert, first place in the order, number of pairs
var<workgroup> pairs: array<u32, TILE_TOKENS>;
var<private> run: vec3u;
var<private> first_row: u32;  // of the tile, in the expert

fn word(i: u32) -> Word { return w[i]; }
fn tile_row(i: u32) -> u32 { return ((run.x - p.first) * p.rows + min(first_row + i, p.rows - 1u)) * p.row_bytes; }
fn tile_x(j: u32) -> u32 {
  let pair = pairs[min(j, run.z - 1u)];
  return p.x + select(pair, pair / p.used, p.x_per_token == 1u) * p.x_stride;
}
fn tile_four(x: u32, c: u32) -> vec4f { return read4(x + c, p.cols - c); }
fn tile_store(j: u32, i: u32, sums: vec4f) {
  let r = first_row + i;
  if (j < run.z && r < p.rows) { write4(p.out + pairs[j] * p.out_stride + r, p.rows - r, sums * scales[run.x]); }
}

@compute @workgroup_size(TILE_THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  if (thread == 0u) {
    let at = p.runs + group.x * 3u;
    chosen = vec3u(u32(arena[at]), u32(arena[at + 1u]), u32(arena[at + 2u]));
  }
  let found = workgroupUniformLoad(&chosen);
  if (found.z == 0u || found.x < p.first || found.x - p.first >= p.count) { return; }
  run = found;
  if (thread < run.z) { pairs[thread] = u32(arena[p.order + run.y + thread]); }
  workgroupBarrier();
  first_row = group.y * TILE_ROWS;
  tile_product(p.cols, thread);
}

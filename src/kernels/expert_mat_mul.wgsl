// out[n] = scales[e] * w[e] times x, for the pairs n = t * used + a of expert e, for the experts [first, first + count)
// that are bound
// one workgroup per tile of 32 rows of an expert and one run of its pairs, see group_experts; grid (rows, runs)
struct Params {
  x: u32, x_stride: u32, out: u32, out_stride: u32, order: u32, runs: u32,
  used: u32, x_per_token: u32, rows: u32, cols: u32, row_bytes: u32, first: u32, count: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<u32>;
@group(0) @binding(3) var<storage, read> scales: array<f32>;

var<workgroup> chosen: vec3u;  // expert, first place in the order, number of pairs
var<workgroup> pairs: array<u32, TILE>;

fn word(i: u32) -> u32 { return w[i]; }
fn tile_value(x: u32, c: u32) -> f32 { return arena[x + c]; }

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  if (thread == 0u) {
    let at = p.runs + group.y * 3u;
    chosen = vec3u(u32(arena[at]), u32(arena[at + 1u]), u32(arena[at + 2u]));
  }
  let run = workgroupUniformLoad(&chosen);
  let expert = run.x;
  if (run.z == 0u || expert < p.first || expert - p.first >= p.count) { return; }
  if (thread < run.z) { pairs[thread] = u32(arena[p.order + run.y + thread]); }
  workgroupBarrier();

  let first_row = group.x * TILE;
  let row = first_row + thread % TILE;
  let pair = pairs[min(thread % TILE, run.z - 1u)];
  let x = p.x + select(pair, pair / p.used, p.x_per_token == 1u) * p.x_stride;
  let valid = select(thread % TILE < run.z, row < p.rows, thread < TILE);
  var sums = tile_product(((expert - p.first) * p.rows + row) * p.row_bytes, x, valid, p.cols, thread);
  for (var j = 0u; j < 4u; j++) {
    let n = thread / 8u * 4u + j;
    for (var i = 0u; i < 4u; i++) {
      let r = first_row + thread % 8u * 4u + i;
      if (n < run.z && r < p.rows) { arena[p.out + pairs[n] * p.out_stride + r] = sums[j][i] * scales[expert]; }
    }
  }
}

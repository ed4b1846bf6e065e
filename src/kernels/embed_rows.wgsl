// out[t] = table[ids[t]] * scale, for the rows [first, first + count) of the table that are bound
// one thread per run of 16 columns; grid (columns, tokens)
struct Params {
  ids: u32, ids_stride: u32, out: u32, out_stride: u32,
  cols: u32, row_bytes: u32, first: u32, count: u32, scale: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<u32>;

fn word(i: u32) -> u32 { return w[i]; }

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) at: vec3u) {
  let t = at.y;
  let c = at.x * 16u;
  let id = u32(arena[p.ids + t * p.ids_stride]);
  if (c >= p.cols || id < p.first || id - p.first >= p.count) { return; }
  let block = (id - p.first) * p.row_bytes + c / BLOCK * BLOCK_BYTES;
  var run = weights16(block, c % BLOCK / 16u);
  for (var i = 0u; i < 16u && c + i < p.cols; i++) {
    arena[p.out + t * p.out_stride + c + i] = run[i / 4u][i % 4u] * p.scale;
  }
}

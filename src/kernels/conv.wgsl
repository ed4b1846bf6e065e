// a 3 x 3 convolution with stride 2, zeros around the image; a position has `channels` numbers in x, `rows` in out
// one workgroup per tile of rows of the weight and of positions; grid (positions, rows)
struct Params {
  x: u32, x_stride: u32, out: u32, out_stride: u32,
  height: u32, width: u32, channels: u32,
  rows: u32, positions: u32, out_width: u32, row_bytes: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<Value>;
@group(0) @binding(2) var<storage, read> w: array<Word>;

var<private> first_row: u32;
var<private> first_position: u32;

fn word(i: u32) -> Word { return w[i]; }

// What column `c` of the weight meets at a position of the output.
fn value_at(position: u32, c: u32) -> f32 {
  // Before the first row or column these wrap around and are too large.
  let row = position / p.out_width * 2u + c % 9u / 3u - 1u;
  let column = position % p.out_width * 2u + c % 3u - 1u;
  if (row >= p.height || column >= p.width || c >= 9u * p.channels) { return 0.0; }
  return arena[p.x + row * p.x_stride + column * p.channels + c / 9u];
}

fn tile_row(i: u32) -> u32 { return min(first_row + i, p.rows - 1u) * p.row_bytes; }
fn tile_x(j: u32) -> u32 { return min(first_position + j, p.positions - 1u); }
fn tile_four(x: u32, c: u32) -> vec4f {
  return vec4f(value_at(x, c), value_at(x, c + 1u), value_at(x, c + 2u), value_at(x, c + 3u));
}
fn tile_store(j: u32, i: u32, sums: vec4f) {
  let n = first_position + j;
  let r = first_row + i;
  if (n >= p.positions || r >= p.rows) { return; }
  write4(p.out + n / p.out_width * p.out_stride + n % p.out_width * p.rows + r, p.rows - r, sums);
}

@compute @workgroup_size(TILE_THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  first_row = group.y * TILE_ROWS;
  first_position = group.x * TILE_TOKENS;
  tile_product(9u * p.channels, thread);
}

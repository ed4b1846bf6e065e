// a 3 x 3 convolution with stride 2, zeros around the image; a position has `channels` numbers in x, `rows` in out
// one workgroup per tile of 32 rows of the weight and 32 positions; grid (rows, positions)
struct Params {
  x: u32, x_stride: u32, out: u32, out_stride: u32,
  height: u32, width: u32, channels: u32,
  rows: u32, positions: u32, out_width: u32, row_bytes: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<u32>;

fn word(i: u32) -> u32 { return w[i]; }

// What column `c` of the weight meets at a position of the output.
fn tile_value(position: u32, c: u32) -> f32 {
  // Before the first row or column these wrap around and are too large.
  let row = position / p.out_width * 2u + c % 9u / 3u - 1u;
  let column = position % p.out_width * 2u + c % 3u - 1u;
  if (row >= p.height || column >= p.width) { return 0.0; }
  return arena[p.x + row * p.x_stride + column * p.channels + c / 9u];
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let first_row = group.x * TILE;
  let first_position = group.y * TILE;
  let row = first_row + thread % TILE;
  let position = first_position + thread % TILE;
  let valid = select(position < p.positions, row < p.rows, thread < TILE);
  var sums = tile_product(row * p.row_bytes, position, valid, 9u * p.channels, thread);
  for (var j = 0u; j < 4u; j++) {
    let n = first_position + thread / 8u * 4u + j;
    let out = p.out + n / p.out_width * p.out_stride + n % p.out_width * p.rows;
    for (var i = 0u; i < 4u; i++) {
      let r = first_row + thread % 8u * 4u + i;
      if (n < p.positions && r < p.rows) { arena[out + r] = sums[j][i]; }
    }
  }
}

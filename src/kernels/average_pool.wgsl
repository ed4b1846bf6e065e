// out[Y * width / side + X] = scale * the mean of the side x side rows of x around it; row y * width + x is at (x, y)
// one thread per element; grid (columns, rows of out)
struct Params {
  x: u32, x_stride: u32, out: u32, out_stride: u32,
  cols: u32, width: u32, side: u32, scale: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) at: vec3u) {
  if (at.x >= p.cols) { return; }
  let across = p.width / p.side;
  let first = at.y / across * p.side * p.width + at.y % across * p.side;
  var sum = 0.0;
  for (var i = 0u; i < p.side * p.side; i++) {
    sum += arena[p.x + (first + i / p.side * p.width + i % p.side) * p.x_stride + at.x];
  }
  arena[p.out + at.y * p.out_stride + at.x] = sum * (p.scale / f32(p.side * p.side));
}

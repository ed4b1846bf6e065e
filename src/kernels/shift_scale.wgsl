// every row: out = (x + sign * shift) * factor
// one thread per element; grid (columns, rows)
struct Params {
  x: u32, x_stride: u32, out: u32, out_stride: u32,
  cols: u32, sign: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> shift: array<f32>;
@group(0) @binding(3) var<storage, read> factor: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) at: vec3u) {
  if (at.x >= p.cols) { return; }
  let x = arena[p.x + at.y * p.x_stride + at.x];
  arena[p.out + at.y * p.out_stride + at.x] = (x + p.sign * shift[at.x]) * factor[at.x];
}

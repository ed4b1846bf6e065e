// out[t] = soft[t] where is_soft[t] is not 0, else x[t]
// one thread per column; grid (columns, tokens)
struct Params {
  x: u32, x_stride: u32, soft: u32, soft_stride: u32, is_soft: u32, is_soft_stride: u32,
  out: u32, out_stride: u32, cols: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) at: vec3u) {
  let t = at.y;
  if (at.x >= p.cols) { return; }
  var row = p.x + t * p.x_stride;
  if (arena[p.is_soft + t * p.is_soft_stride] != 0.0) { row = p.soft + t * p.soft_stride; }
  arena[p.out + t * p.out_stride + at.x] = arena[row + at.x];
}

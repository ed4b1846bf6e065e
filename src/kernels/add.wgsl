// out = (a + b) * scale
// one thread per element; grid (columns, rows)
struct Params {
  a: u32, a_stride: u32, b: u32, b_stride: u32, out: u32, out_stride: u32,
  cols: u32, scale: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) at: vec3u) {
  if (at.x >= p.cols) { return; }
  arena[p.out + at.y * p.out_stride + at.x] =
      (arena[p.a + at.y * p.a_stride + at.x] + arena[p.b + at.y * p.b_stride + at.x]) * p.scale;
}

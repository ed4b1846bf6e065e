// out = cap * tanh(x / cap)
// one thread per element; grid (columns, rows)
struct Params {
  x: u32, x_stride: u32, out: u32, out_stride: u32,
  cols: u32, cap: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) at: vec3u) {
  if (at.x >= p.cols) { return; }
  let x = arena[p.x + at.y * p.x_stride + at.x];
  var capped = p.cap * tanh(clamp(x / p.cap, -15.0, 15.0));
  // Clamping would make a number of what is none, and hide it.
  if ((bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u) { capped = x; }
  arena[p.out + at.y * p.out_stride + at.x] = capped;
}

// sums of 32 neighbours in rows of x, times the powers of two that halves.wgsl brings in; x within bounds where there are some
// one thread per sum; grid (sums of a row / WG, rows)
struct Params {
  x: u32, x_stride: u32, cols: u32, pitch: u32,
  in_min: f32, in_max: f32, out_min: f32, out_max: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> factors: array<f32>;
@group(0) @binding(3) var<storage, read_write> sums: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let n = group.x * WG + thread;
  if (n >= p.cols / 32u) { return; }
  var sum = 0.0;
  for (var i = 0u; i < 32u; i++) { sum += bounded_x(arena[p.x + group.y * p.x_stride + n * 32u + i]); }
  sums[group.y * (p.pitch / 32u) + n] = sum / factors[group.y];
}

// out[t][c] = sum over j of weight[c][j] * x[t - (taps - 1) + j][c], with zeros before the first row
// one thread per element; grid (columns, rows)
struct Params {
  x: u32, x_stride: u32, out: u32, out_stride: u32,
  cols: u32, taps: u32, weight_stride: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) at: vec3u) {
  if (at.x >= p.cols) { return; }
  var sum = 0.0;
  let taps = min(p.taps, at.y + 1u);
  for (var j = 0u; j < taps; j++) {  // backwards in time
    sum += weight[at.x * p.weight_stride + p.taps - 1u - j] * arena[p.x + (at.y - j) * p.x_stride + at.x];
  }
  arena[p.out + at.y * p.out_stride + at.x] = sum;
}

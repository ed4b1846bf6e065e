// out[t] = sum over a of weights[t][a] * y[t * used + a]
// one thread per element; grid (columns, rows)
struct Params {
  y: u32, y_stride: u32, weights: u32, weights_stride: u32, out: u32, out_stride: u32,
  used: u32, cols: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) at: vec3u) {
  if (at.x >= p.cols) { return; }
  var sum = 0.0;
  for (var a = 0u; a < p.used; a++) {
    sum += arena[p.weights + at.y * p.weights_stride + a] * arena[p.y + (at.y * p.used + a) * p.y_stride + at.x];
  }
  arena[p.out + at.y * p.out_stride + at.x] = sum;
}

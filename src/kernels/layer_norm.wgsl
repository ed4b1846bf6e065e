// every row: out = (x - mean) / sqrt(variance + eps) * weight + bias
// one workgroup per row; grid (rows)
struct Params {
  x: u32, x_stride: u32, out: u32, out_stride: u32,
  cols: u32, eps: f32, with_bias: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<f32>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let x = p.x + group.x * p.x_stride;
  let out = p.out + group.x * p.out_stride;
  var sum = 0.0;
  for (var i = thread; i < p.cols; i += WG) { sum += arena[x + i]; }
  let mean = reduce_sum(sum, thread) / f32(p.cols);
  var squares = 0.0;
  for (var i = thread; i < p.cols; i += WG) {
    let distance = arena[x + i] - mean;
    squares += distance * distance;
  }
  let factor = 1.0 / sqrt(reduce_sum(squares, thread) / f32(p.cols) + p.eps);
  for (var i = thread; i < p.cols; i += WG) {
    arena[out + i] = (arena[x + i] - mean) * factor * weight[i] + p.with_bias * bias[i];
  }
}

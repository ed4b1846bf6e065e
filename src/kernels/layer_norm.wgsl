// every run of `group` elements of a row: out = (x - mean) / sqrt(variance + eps) * weight + bias
// one workgroup per run; grid (runs of a row, rows)
struct Params {
  x: u32, x_stride: u32, out: u32, out_stride: u32,
  group: u32, eps: f32, with_bias: f32, relu: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<f32>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let x = p.x + group.y * p.x_stride + group.x * p.group;
  let out = p.out + group.y * p.out_stride + group.x * p.group;
  var sum = 0.0;
  for (var i = thread; i < p.group; i += WG) { sum += arena[x + i]; }
  let mean = reduce_sum(sum, thread) / f32(p.group);
  var squares = 0.0;
  for (var i = thread; i < p.group; i += WG) {
    let centred = arena[x + i] - mean;
    squares += centred * centred;
  }
  let factor = 1.0 / sqrt(reduce_sum(squares, thread) / f32(p.group) + p.eps);
  for (var i = thread; i < p.group; i += WG) {
    var value = (arena[x + i] - mean) * factor * weight[i] + p.with_bias * bias[i];
    if (p.relu == 1u && value < 0.0) { value = 0.0; }
    arena[out + i] = value;
  }
}

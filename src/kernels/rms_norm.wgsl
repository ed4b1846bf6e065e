// every run of `group` elements of a row: out = x / sqrt(mean(x^2) + eps) * weight * scale
// one workgroup per run; grid (runs of a row, rows)
struct Params {
  x: u32, x_stride: u32, out: u32, out_stride: u32,
  group: u32, eps: f32, scale: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let x = p.x + group.y * p.x_stride + group.x * p.group;
  let out = p.out + group.y * p.out_stride + group.x * p.group;
  var squares = 0.0;
  for (var i = thread; i < p.group; i += WG) { squares += arena[x + i] * arena[x + i]; }
  let factor = p.scale / sqrt(reduce_sum(squares, thread) / f32(p.group) + p.eps);
  for (var i = thread; i < p.group; i += WG) { arena[out + i] = arena[x + i] * factor * weight[i]; }
}

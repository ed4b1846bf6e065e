// sum = (x + a / sqrt(mean(a^2) + eps) * a_weight * a_scale) * scale; then next = the same norm of sum, where NEXT
// one workgroup per row, PER values per thread; grid (rows)
struct Params {
  a: u32, a_stride: u32, x: u32, x_stride: u32, sum: u32, sum_stride: u32, next: u32, next_stride: u32,
  cols: u32, a_eps: f32, a_scale: f32, scale: f32, next_eps: f32, next_scale: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<Value>;
@group(0) @binding(2) var<storage, read> a_weight: array<Value>;
@group(0) @binding(3) var<storage, read> next_weight: array<Value>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let a = (p.a + group.x * p.a_stride) / WIDTH;
  let x = (p.x + group.x * p.x_stride) / WIDTH;
  let sum = (p.sum + group.x * p.sum_stride) / WIDTH;
  let next = (p.next + group.x * p.next_stride) / WIDTH;
  let count = p.cols / WIDTH;
  // All that is read is asked for at once, lest each sum wait for memory anew.
  var kept: array<Value, PER>;
  var added: array<Value, PER>;
  var next_weights: array<Value, PER>;
  var squares = 0.0;
  for (var n = 0u; n < PER; n++) {
    let i = thread + n * WG;
    if (i < count) {
      let value = arena[a + i];
      kept[n] = value * a_weight[i];
      added[n] = arena[x + i];
      next_weights[n] = next_weight[i];
      squares += square(value);
    }
  }
  let factor = p.a_scale / sqrt(reduce_sum(squares, thread) / f32(p.cols) + p.a_eps);
  squares = 0.0;
  for (var n = 0u; n < PER; n++) {
    let i = thread + n * WG;
    if (i < count) {
      let value = (added[n] + kept[n] * factor) * p.scale;
      arena[sum + i] = value;
      kept[n] = value * next_weights[n];
      squares += square(value);
    }
  }
  if (NEXT) {
    let next_factor = p.next_scale / sqrt(reduce_sum(squares, thread) / f32(p.cols) + p.next_eps);
    for (var n = 0u; n < PER; n++) {
      let i = thread + n * WG;
      if (i < count) { arena[next + i] = kept[n] * next_factor; }
    }
  }
}

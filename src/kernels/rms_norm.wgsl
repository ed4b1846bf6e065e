// every run of `group` elements of a row: out = x / sqrt(mean(x^2) + eps) * weight * scale
// one workgroup per run, PER values per thread; grid (runs of a row, rows)
struct Params {
  x: u32, x_stride: u32, out: u32, out_stride: u32,
  group: u32, eps: f32, scale: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<Value>;
@group(0) @binding(2) var<storage, read> weight: array<Value>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let x = (p.x + group.y * p.x_stride + group.x * p.group) / WIDTH;
  let out = (p.out + group.y * p.out_stride + group.x * p.group) / WIDTH;
  let count = p.group / WIDTH;
  var kept: array<Value, PER>;
  var squares = 0.0;
  for (var n = 0u; n < PER; n++) {
    let i = thread + n * WG;
    if (i < count) {
      kept[n] = arena[x + i];
      squares += square(kept[n]);
    }
  }
  let factor = p.scale / sqrt(reduce_sum(squares, thread) / f32(p.group) + p.eps);
  for (var n = 0u; n < PER; n++) {
    let i = thread + n * WG;
    if (i < count) { arena[out + i] = kept[n] * factor * weight[i]; }
  }
}

// every head of a row: out = rotation by positions[t] of x / sqrt(mean(x^2) + eps) * weight
// one workgroup per head; grid (heads, rows)
struct Params {
  x: u32, x_stride: u32, out: u32, out_stride: u32,
  positions: u32, positions_stride: u32, eps: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<f32>;
@group(0) @binding(3) var<storage, read> turns: array<vec2u>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let t = group.y;
  var head = normed_head(p.x + t * p.x_stride + group.x * HEAD, p.eps, thread);
  let out = p.out + t * p.out_stride + group.x * HEAD;
  let position = u32(arena[p.positions + t * p.positions_stride]);
  for (var n = 0u; n < PER; n++) {
    let i = head_element(n, thread);
    if (i < HALF) {
      let low = head.low[n] * vec2f(weight[i], weight[i + 1u]);
      let high = head.high[n] * vec2f(weight[HALF + i], weight[HALF + i + 1u]);
      let pair = turned(low, high, i, position);
      arena[out + i] = pair[0].x;
      arena[out + i + 1u] = pair[0].y;
      arena[out + HALF + i] = pair[1].x;
      arena[out + HALF + i + 1u] = pair[1].y;
    }
  }
}

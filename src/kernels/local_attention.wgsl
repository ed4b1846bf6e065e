// softmax attention of row t over the rows t - i, i < window, with the score
// cap * tanh(q' . (key_scale * keys[t - i] + relative[i]) / cap), q' = q[t] * query_scale * weight
// one workgroup per head and row; grid (heads, rows)
struct Params {
  q: u32, q_stride: u32, keys: u32, keys_stride: u32, values: u32, values_stride: u32,
  relative: u32, relative_stride: u32, out: u32, out_stride: u32,
  head_size: u32, window: u32, query_scale: f32, key_scale: f32, cap: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<f32>;

const PARTS: u32 = 8u;  // of a dot product
var<workgroup> query: array<f32, 512>;
var<workgroup> parts: array<f32, 32 * PARTS>;
var<workgroup> scores: array<f32, 32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let t = group.y;
  let head = group.x * p.head_size;
  let visible = min(p.window, t + 1u);
  for (var i = thread; i < p.head_size; i += WG) {
    query[i] = arena[p.q + t * p.q_stride + head + i] * p.query_scale * weight[i];
  }
  workgroupBarrier();
  for (var n = thread; n < visible * PARTS; n += WG) {
    let key = p.keys + (t - n / PARTS) * p.keys_stride + head;
    let relative = p.relative + n / PARTS * p.relative_stride + head;
    var sum = 0.0;
    for (var i = n % PARTS; i < p.head_size; i += PARTS) {
      sum += query[i] * (p.key_scale * arena[key + i] + arena[relative + i]);
    }
    parts[n] = sum;
  }
  workgroupBarrier();
  for (var n = thread; n < visible; n += WG) {
    var sum = 0.0;
    for (var i = 0u; i < PARTS; i++) { sum += parts[n * PARTS + i]; }
    scores[n] = p.cap * tanh(clamp(sum / p.cap, -15.0, 15.0));
  }
  workgroupBarrier();
  var largest = scores[0];
  for (var n = 1u; n < visible; n++) { largest = max(largest, scores[n]); }
  var total = 0.0;
  for (var n = 0u; n < visible; n++) { total += exp(scores[n] - largest); }
  for (var i = thread; i < p.head_size; i += WG) {
    var sum = 0.0;
    for (var n = 0u; n < visible; n++) {
      sum += exp(scores[n] - largest) * arena[p.values + (t - n) * p.values_stride + head + i];
    }
    arena[p.out + t * p.out_stride + head + i] = sum / total;
  }
}

// norm_rope of the query heads; norm and rotation of the key heads, norm of the value heads, into the rings
// one workgroup per head: queries, then keys, then values; grid (all heads, rows)
struct Params {
  q: u32, q_stride: u32, out: u32, out_stride: u32, k: u32, k_stride: u32, v: u32, v_stride: u32,
  positions: u32, positions_stride: u32, q_heads: u32, kv_heads: u32, slots: u32, eps: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> q_weight: array<f32>;
@group(0) @binding(3) var<storage, read> k_weight: array<f32>;
@group(0) @binding(4) var<storage, read> turns: array<vec2u>;
@group(0) @binding(5) var<storage, read_write> keys: array<KvWord>;
@group(0) @binding(6) var<storage, read_write> values: array<KvWord>;

var<workgroup> made: array<vec2f, HALF>;  // a head of keys or values, on its way to its ring

fn largest_of(four: u32) -> f32 {
  var largest = vec2f();
  if (KV_SCALED) {
    for (var i = 0u; i < 16u; i++) { largest = max(largest, abs(made[four / 8u * 16u + i])); }
  }
  return max(largest.x, largest.y);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let t = group.y;
  let is_query = group.x < p.q_heads;
  let is_key = !is_query && group.x < p.q_heads + p.kv_heads;
  var head_at = group.x;
  var x = p.q + t * p.q_stride;
  if (is_key) {
    head_at = group.x - p.q_heads;
    x = p.k + t * p.k_stride;
  } else if (!is_query) {
    head_at = group.x - p.q_heads - p.kv_heads;
    x = p.v + t * p.v_stride;
  }
  var head = normed_head(x + head_at * HEAD, p.eps, thread);
  let position = u32(arena[p.positions + t * p.positions_stride]);
  let out = p.out + t * p.out_stride + head_at * HEAD;
  for (var n = 0u; n < PER; n++) {
    let i = head_element(n, thread);
    if (i < HALF) {
      var low = head.low[n];
      var high = head.high[n];
      if (is_query) {
        low *= vec2f(q_weight[i], q_weight[i + 1u]);
        high *= vec2f(q_weight[HALF + i], q_weight[HALF + i + 1u]);
      } else if (is_key) {
        low *= vec2f(k_weight[i], k_weight[i + 1u]);
        high *= vec2f(k_weight[HALF + i], k_weight[HALF + i + 1u]);
      } else {
        made[i / 2u] = low;
        made[(HALF + i) / 2u] = high;
        continue;
      }
      let pair = turned(low, high, i, position);
      if (is_key) {
        made[i / 2u] = pair[0];
        made[(HALF + i) / 2u] = pair[1];
      } else {
        arena[out + i] = pair[0].x;
        arena[out + i + 1u] = pair[0].y;
        arena[out + HALF + i] = pair[1].x;
        arena[out + HALF + i + 1u] = pair[1].y;
      }
    }
  }
  if (is_query) { return; }
  workgroupBarrier();
  let ring = (position % p.slots * p.kv_heads + head_at) * (HEAD / 4u);
  for (var i = thread; i < HEAD / 4u; i += WG) {
    let four = kv_pack(vec4f(made[i * 2u], made[i * 2u + 1u]), largest_of(i));
    if (is_key) {
      put_key(ring + i, four);
    } else {
      put_value(ring + i, four);
    }
  }
}

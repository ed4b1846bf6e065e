// softmax attention of one query head over the keys j <= last, position - j < window; online softmax over tiles of WG
// keys
// one workgroup per head, token and part of the keys; grid (heads, tokens, parts)
struct Params {
  q: u32, q_stride: u32, out: u32, out_stride: u32,
  positions: u32, positions_stride: u32, last: u32, last_stride: u32,
  heads_per_kv: u32, head_size: u32, row: u32, slots: u32, window: u32, parts: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> keys: array<u32>;
@group(0) @binding(3) var<storage, read> values: array<u32>;

// With several parts, each writes its unnormalised sum, its largest score and its weight, for attention_merge:
// row (token * heads + head) * parts + part of head_size + 4 numbers, the last two of no meaning.
const MOST: u32 = 512u / WG;  // elements of a head per thread
var<workgroup> query: array<f32, 512>;
var<workgroup> weights: array<f32, WG>;
var<workgroup> here: vec2f;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let head = group.x;
  let t = group.y;
  if (thread == 0u) {
    here = vec2f(arena[p.positions + t * p.positions_stride], arena[p.last + t * p.last_stride]);
  }
  let bounds = workgroupUniformLoad(&here);
  let seen = seen_at(bounds.x, bounds.y);
  let first = seen.first;
  let begin = group.z * seen.share;
  let end = min(begin + seen.share, seen.count);
  if (begin >= end) { return; }
  let base = head / p.heads_per_kv * p.head_size / KV_PER_WORD;
  let words = p.head_size / KV_PER_WORD;

  for (var i = thread; i < p.head_size; i += WG) { query[i] = arena[p.q + t * p.q_stride + head * p.head_size + i]; }
  workgroupBarrier();
  var largest = -3.0e38;
  var total = 0.0;
  var sums: array<vec2f, MOST>;
  for (var tile = begin; tile < end; tile += WG) {
    let j = tile + thread;
    var score = -3.0e38;
    if (j < end) {
      let key = (first + j) % p.slots * p.row + base;
      var sum = 0.0;
      for (var i = 0u; i < words; i++) {
        let pair = kv_unpack(keys[key + i]);
        sum += pair.x * query[i * KV_PER_WORD];
        if (KV_PER_WORD == 2u) { sum += pair.y * query[i * 2u + 1u]; }
      }
      score = sum;
    }
    let before = largest;
    largest = max(largest, reduce_max(score, thread));
    let rescale = exp(before - largest);
    var weight = 0.0;
    if (j < end) { weight = exp(score - largest); }
    weights[thread] = weight;
    total = total * rescale + reduce_sum(weight, thread);  // its barriers also publish `weights`
    let count = min(WG, end - tile);
    for (var n = 0u; n < MOST; n++) {
      let word = thread + n * WG;
      if (word < words) {
        var sum = sums[n] * rescale;
        for (var k = 0u; k < count; k++) {
          sum += weights[k] * kv_unpack(values[(first + tile + k) % p.slots * p.row + base + word]);
        }
        sums[n] = sum;
      }
    }
  }

  var out = p.out + t * p.out_stride + head * p.head_size;
  var factor = 1.0 / total;
  if (p.parts > 1u) {
    out = p.out + ((t * groups.x + head) * p.parts + group.z) * (p.head_size + 4u);
    factor = 1.0;
    if (thread == 0u) {
      arena[out + p.head_size] = largest;
      arena[out + p.head_size + 1u] = total;
    }
  }
  for (var n = 0u; n < MOST; n++) {
    let word = thread + n * WG;
    if (word < words) {
      arena[out + word * KV_PER_WORD] = sums[n].x * factor;
      if (KV_PER_WORD == 2u) { arena[out + word * 2u + 1u] = sums[n].y * factor; }
    }
  }
}

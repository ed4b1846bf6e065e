// softmax attention of one query head over the keys j <= last, position - j < window; online softmax over tiles of WG
// keys
// one workgroup per head, token and part of the keys; grid (heads, tokens, parts)
struct Params {
  q: u32, q_stride: u32, out: u32, out_stride: u32,
  positions: u32, positions_stride: u32, last: u32, last_stride: u32,
  heads_per_kv: u32, fours: u32, row: u32, slots: u32, window: u32, parts: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> keys: array<KvWord>;
@group(0) @binding(3) var<storage, read> values: array<KvWord>;

// With several parts, each writes its unnormalised sum, its largest score and its weight, for attention_merge:
// row (token * heads + head) * parts + part of fours + 1 fours, the last two numbers of no meaning.
const LARGEST: u32 = 128u;                   // fours of a head
const MOST: u32 = (LARGEST + WG - 1u) / WG;  // of them, a thread's
var<workgroup> query: array<vec4f, LARGEST>;
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
  let base = head / p.heads_per_kv * p.fours;

  for (var i = thread; i < p.fours; i += WG) {
    let at = p.q + t * p.q_stride + (head * p.fours + i) * 4u;
    query[i] = vec4f(arena[at], arena[at + 1u], arena[at + 2u], arena[at + 3u]);
  }
  workgroupBarrier();
  var largest = -3.0e38;
  var total = 0.0;
  var sums: array<vec4f, MOST>;
  for (var tile = begin; tile < end; tile += WG) {
    let j = tile + thread;
    var score = -3.0e38;
    if (j < end) {
      let key = (first + j) % p.slots * p.row + base;
      var sum = 0.0;
      for (var i = 0u; i < p.fours; i++) { sum += dot(kv_four(key_at(key + i)), query[i]); }
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
      let four = thread + n * WG;
      if (four < p.fours) {
        var sum = sums[n] * rescale;
        for (var k = 0u; k < count; k++) {
          sum += weights[k] * kv_four(value_at((first + tile + k) % p.slots * p.row + base + four));
        }
        sums[n] = sum;
      }
    }
  }

  var out = p.out + t * p.out_stride + head * p.fours * 4u;
  var factor = 1.0 / total;
  if (p.parts > 1u) {
    out = p.out + ((t * groups.x + head) * p.parts + group.z) * (p.fours + 1u) * 4u;
    factor = 1.0;
    if (thread == 0u) {
      arena[out + p.fours * 4u] = largest;
      arena[out + p.fours * 4u + 1u] = total;
    }
  }
  for (var n = 0u; n < MOST; n++) {
    let four = thread + n * WG;
    if (four < p.fours) {
      for (var i = 0u; i < 4u; i++) { arena[out + four * 4u + i] = sums[n][i] * factor; }
    }
  }
}

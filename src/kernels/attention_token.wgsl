// attention of one token from its products on: norm and rotation of the query heads; norm and rotation of its keys, norm
// of its values, into the rings; and as attention_decode
// one workgroup per QUERIES heads and part of the keys; grid (heads / QUERIES, 1, parts)
struct Params {
  q: u32, k: u32, v: u32, out: u32, position: u32,
  heads_per_kv: u32, row: u32, slots: u32, window: u32, parts: u32, eps: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<vec4f>;
@group(0) @binding(2) var<storage, read> q_weight: array<vec4f>;
@group(0) @binding(3) var<storage, read> k_weight: array<vec4f>;
@group(0) @binding(4) var<storage, read> turns: array<vec4u>;
@group(0) @binding(5) var<storage, read_write> keys: array<KvWord>;
@group(0) @binding(6) var<storage, read_write> values: array<KvWord>;

// FRESH comes before this text: whether this layer has keys and values of its own. Those of the token are the last of
// all. Only the part that has them writes them into the ring, and of the workgroups that share the key head, the first;
// all of them read what they computed themselves, rounded as the ring has it, so that none waits for another.
//
// A thread has the four `own` of the first half of a head and the one of the second half that it turns against, of every
// GROUPS-th query; the first two groups have keys and values too.
const GROUPS: u32 = WG / PAIRS;
const STAGED: u32 = (QUERIES + GROUPS - 1u) / GROUPS;
var<workgroup> here: f32;
var<workgroup> fresh: array<vec4f, 2u * FOURS>;  // key, value
var<workgroup> query_scales: array<f32, QUERIES>;

fn fresh_key(four: u32) -> vec4f { return fresh[four]; }
fn fresh_value(four: u32) -> vec4f { return fresh[FOURS + four]; }
fn query_scale(query: u32) -> f32 { return query_scales[query]; }

// 1 / the root mean square of a head, whose squares are in lane_sums: first those of the queries, then key and value.
fn norm_of(head: u32) -> f32 {
  var sum = 0.0;
  for (var i = 0u; i < PAIRS; i++) { sum += lane_sums[head * SPANS + i / LANES][i % LANES]; }
  return 1.0 / sqrt(sum / f32(HEAD) + p.eps);
}

// The size of the largest of the numbers that share a scale with this four of `fresh`.
fn largest_of(four: u32) -> f32 {
  var largest = vec4f();
  if (KV_SCALED) {
    for (var i = 0u; i < 8u; i++) { largest = max(largest, abs(fresh[four / 8u * 8u + i])); }
  }
  return max(max(largest.x, largest.y), max(largest.z, largest.w));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let head = group.x * QUERIES;
  let own = thread % PAIRS;
  let first = thread / PAIRS;
  let kv_base = head / p.heads_per_kv * FOURS;
  // What does not depend on the position is asked for before the position is known.
  if (thread == 0u) { here = number(p.position); }
  var low: array<vec4f, STAGED>;
  var high: array<vec4f, STAGED>;
  for (var i = 0u; i < STAGED; i++) {
    let q = p.q / 4u + (head + min(first + i * GROUPS, QUERIES - 1u)) * FOURS + own;
    low[i] = arena[q];
    high[i] = arena[q + PAIRS];
  }
  let q_low = q_weight[own];
  let q_high = q_weight[own + PAIRS];
  let turn01 = turns[own * 2u];
  let turn23 = turns[own * 2u + 1u];
  var kv_low = vec4f();
  var kv_high = vec4f();
  var k_low = vec4f();
  var k_high = vec4f();
  if (FRESH && first < 2u) {
    let x = select(p.v, p.k, first == 0u) / 4u + kv_base + own;
    kv_low = arena[x];
    kv_high = arena[x + PAIRS];
    k_low = k_weight[own];
    k_high = k_weight[own + PAIRS];
  }

  let position = workgroupUniformLoad(&here);
  let seen = seen_at(position, position);
  let begin = group.z * seen.share;
  if (begin >= seen.count) { return; }
  let count = min(seen.share, seen.count - begin);
  let is_last = FRESH && begin + count == seen.count;
  let part = Part(count, select(count, count - 1u, is_last), (seen.first + begin) % p.slots, kv_base);
  let some_keys = ask_keys(part, 0u, thread);
  let some_values = ask_values(part, 0u, thread);

  // Norms are factors, which scores take as well as queries do: nobody waits for them here.
  let at = u32(position);
  let a = turn_at(at, turn01.xy);
  let b = turn_at(at, turn01.zw);
  let c = turn_at(at, turn23.xy);
  let d = turn_at(at, turn23.zw);
  let cosine = vec4f(a.x, b.x, c.x, d.x);
  let sine = vec4f(a.y, b.y, c.y, d.y);
  for (var i = 0u; i < STAGED; i++) {
    let query = first + i * GROUPS;
    if (query < QUERIES) {
      lane_sums[query * SPANS + own / LANES][own % LANES] = dot(low[i], low[i]) + dot(high[i], high[i]);
      let x = low[i] * q_low;
      let y = high[i] * q_high;
      queries[query][own] = x * cosine - y * sine;
      queries[query][own + PAIRS] = x * sine + y * cosine;
    }
  }
  if (is_last && first < 2u) {
    lane_sums[(QUERIES + first) * SPANS + own / LANES][own % LANES] = dot(kv_low, kv_low) + dot(kv_high, kv_high);
  }
  workgroupBarrier();
  if (thread < QUERIES) { query_scales[thread] = norm_of(thread); }
  if (is_last) {
    let at_low = first * FOURS + own;
    let at_high = at_low + PAIRS;
    var x = vec4f();
    var y = vec4f();
    if (first < 2u) {
      let norm = norm_of(QUERIES + first);
      x = kv_low * norm;
      y = kv_high * norm;
      if (first == 0u) {
        let even = x * k_low;
        let odd = y * k_high;
        x = even * cosine - odd * sine;
        y = even * sine + odd * cosine;
      }
    }
    var largest = vec2f();
    if (KV_SCALED) {
      if (first < 2u) {
        fresh[at_low] = x;
        fresh[at_high] = y;
      }
      workgroupBarrier();
      if (first < 2u) { largest = vec2f(largest_of(at_low), largest_of(at_high)); }
      workgroupBarrier();
    }
    if (first < 2u) {
      let new_low = kv_pack(x, largest.x);
      let new_high = kv_pack(y, largest.y);
      fresh[at_low] = kv_four(new_low);
      fresh[at_high] = kv_four(new_high);
      if (head % p.heads_per_kv == 0u) {
        let to = row_of(part.start + part.held) + kv_base + own;
        if (first == 0u) {
          put_key(to, new_low);
          put_key(to + PAIRS, new_high);
        } else {
          put_value(to, new_low);
          put_value(to + PAIRS, new_high);
        }
      }
    }
    workgroupBarrier();
  }

  var out = p.out / 4u + head * FOURS;
  var pitch = FOURS;
  if (p.parts > 1u) {
    out = p.out / 4u + (head * p.parts + group.z) * (FOURS + 1u);
    pitch = p.parts * (FOURS + 1u);
  }
  attend(part, out, pitch, thread, some_keys, some_values);
}

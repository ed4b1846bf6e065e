// attention of few tokens: QUERIES heads that have the same keys and values read them once
// one workgroup per QUERIES heads, token and part of the keys; grid (heads / QUERIES, tokens, parts)
struct Params {
  q: u32, q_stride: u32, out: u32, out_stride: u32,
  positions: u32, positions_stride: u32, last: u32, last_stride: u32,
  heads_per_kv: u32, row: u32, slots: u32, window: u32, parts: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<vec4f>;
@group(0) @binding(2) var<storage, read> keys: array<KvFour>;
@group(0) @binding(3) var<storage, read> values: array<KvFour>;

// Before this text come WG threads; HEAD, the size of a head; QUERIES, which divide the heads of a key head; all powers
// of two, and HEAD / 4 at most WG. What is an array in a function is indexed by what is known once its loops are
// unrolled, so that it stays in registers; loops with barriers may not be, hence some comparisons.
const FOURS: u32 = HEAD / 4u;
const LANES: u32 = min(16u, FOURS);    // threads that share a key
const CHUNK: u32 = min(4u, FOURS / LANES);  // fours of a key that a thread reads at a time
const KEYS: u32 = WG / LANES;          // keys of a run
const RUNS: u32 = 2u;                  // of a step
const STEP: u32 = KEYS * RUNS;
const SHARES: u32 = WG / FOURS;        // of the keys of a step, when values are summed
const AHEAD: u32 = min(8u, STEP / SHARES);  // values that a thread reads at a time
const OWNERS: u32 = WG / QUERIES;      // threads that compute the weights of a query
const TOGETHER: u32 = max(1u, QUERIES / SHARES);  // queries whose shares are summed at a time
const STAGED: u32 = (QUERIES * FOURS + WG - 1u) / WG;
const LANE_PITCH: u32 = LANES + 1u;    // one more, lest threads wait for the same bank of memory
const STEP_PITCH: u32 = STEP + 1u;
var<workgroup> queries: array<vec4f, max(QUERIES * FOURS, WG)>;  // [QUERIES][FOURS]; then [TOGETHER][SHARES][FOURS] sums
var<workgroup> lane_sums: array<f32, KEYS * QUERIES * LANE_PITCH>;  // [KEYS][QUERIES][LANES]; then weights of owners
var<workgroup> scores: array<f32, QUERIES * STEP_PITCH>;            // [QUERIES][STEP]
var<workgroup> weights: array<f32, STEP * QUERIES>;                 // [STEP][QUERIES]
var<workgroup> factors: array<f32, QUERIES>;
var<workgroup> here: vec2f;

fn number(at: u32) -> f32 { return arena[at / 4u][at % 4u]; }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let head = group.x * QUERIES;
  let t = group.y;
  if (thread == 0u) {
    here = vec2f(number(p.positions + t * p.positions_stride), number(p.last + t * p.last_stride));
  }
  let bounds = workgroupUniformLoad(&here);
  let seen = seen_at(bounds.x, bounds.y);
  let begin = group.z * seen.share;
  if (begin >= seen.count) { return; }
  let count = min(seen.share, seen.count - begin);
  let start = (seen.first + begin) % p.slots;
  let base = head / p.heads_per_kv * FOURS;

  let q = (p.q + t * p.q_stride) / 4u + head * FOURS;
  var staged: array<vec4f, STAGED>;
  for (var i = 0u; i < STAGED; i++) { staged[i] = arena[q + min(thread + i * WG, QUERIES * FOURS - 1u)]; }
  for (var i = 0u; i < STAGED; i++) {
    if (thread + i * WG < QUERIES * FOURS) { queries[thread + i * WG] = staged[i]; }
  }
  workgroupBarrier();

  let lane = thread % LANES;
  let own_key = thread / LANES;
  let own_query = thread / OWNERS;
  let owner = thread % OWNERS;
  let four = thread % FOURS;
  let share = thread / FOURS;
  var largest = -3.0e38;
  var total = 0.0;
  var sums: array<vec4f, QUERIES>;
  for (var tile = 0u; tile < count; tile += STEP) {
    let left = min(STEP, count - tile);

    var dots = array<f32, RUNS * QUERIES>();  // with a value: else it might keep that of the last step
    for (var c = 0u; c < FOURS; c += LANES * CHUNK) {
      var some = array<vec4f, RUNS * CHUNK>();
      for (var r = 0u; r < RUNS; r++) {
        let key = r * KEYS + own_key;
        if (key < left) {
          let at = row_of(start + tile + key) + base + c + lane;
          for (var i = 0u; i < CHUNK; i++) { some[r * CHUNK + i] = kv_four(keys[at + i * LANES]); }
        }
      }
      for (var i = 0u; i < CHUNK; i++) {
        for (var n = 0u; n < QUERIES; n++) {
          let query = queries[n * FOURS + c + i * LANES + lane];
          for (var r = 0u; r < RUNS; r++) { dots[r * QUERIES + n] += dot(query, some[r * CHUNK + i]); }
        }
      }
    }
    for (var r = 0u; r < RUNS; r++) {
      workgroupBarrier();
      for (var n = 0u; n < QUERIES; n++) {
        var part = 0.0;
        for (var i = 0u; i < RUNS; i++) {
          if (i == r) { part = dots[i * QUERIES + n]; }
        }
        lane_sums[(own_key * QUERIES + n) * LANE_PITCH + lane] = part;
      }
      workgroupBarrier();
      for (var n = thread; n < KEYS * QUERIES; n += WG) {
        var sum = 0.0;
        for (var i = 0u; i < LANES; i++) { sum += lane_sums[n * LANE_PITCH + i]; }
        let key = r * KEYS + n / QUERIES;
        scores[n % QUERIES * STEP_PITCH + key] = select(-3.0e38, sum, key < left);
      }
    }
    workgroupBarrier();

    var most = largest;
    for (var k = 0u; k < STEP; k++) { most = max(most, scores[own_query * STEP_PITCH + k]); }
    let rescale = exp(largest - most);
    largest = most;
    total *= rescale;
    for (var k = owner; k < STEP; k += OWNERS) {
      let weight = exp(scores[own_query * STEP_PITCH + k] - most);
      weights[k * QUERIES + own_query] = weight;
      total += weight;
    }
    if (owner == 0u) { factors[own_query] = rescale; }
    workgroupBarrier();

    for (var n = 0u; n < QUERIES; n++) { sums[n] *= factors[n]; }
    for (var k = share; k < left; k += SHARES * AHEAD) {
      var some = array<vec4f, AHEAD>();
      for (var i = 0u; i < AHEAD; i++) {
        let key = k + i * SHARES;
        if (key < left) { some[i] = kv_four(values[row_of(start + tile + key) + base + four]); }
      }
      for (var i = 0u; i < AHEAD; i++) {
        for (var n = 0u; n < QUERIES; n++) { sums[n] += weights[(k + i * SHARES) * QUERIES + n] * some[i]; }
      }
    }
  }

  lane_sums[thread] = total;
  workgroupBarrier();
  let whole = p.parts == 1u;
  var out = (p.out + t * p.out_stride) / 4u + head * FOURS;
  var pitch = FOURS;
  if (!whole) {
    out = p.out / 4u + ((t * groups.x * QUERIES + head) * p.parts + group.z) * (FOURS + 1u);
    pitch = p.parts * (FOURS + 1u);
  }
  if (owner == 0u) {
    total = 0.0;
    for (var i = 0u; i < min(OWNERS, STEP); i++) { total += lane_sums[thread + i]; }
    factors[own_query] = select(1.0, 1.0 / total, whole);
    if (!whole) { arena[out + own_query * pitch + FOURS] = vec4f(largest, total, 0.0, 0.0); }
  }
  for (var first = 0u; first < QUERIES; first += TOGETHER) {
    workgroupBarrier();
    for (var n = 0u; n < QUERIES; n++) {
      if (n / TOGETHER * TOGETHER == first) { queries[(n - first) * WG + thread] = sums[n]; }
    }
    workgroupBarrier();
    for (var n = thread; n < TOGETHER * FOURS; n += WG) {
      var sum = vec4f();
      for (var i = 0u; i < SHARES; i++) { sum += queries[n / FOURS * WG + i * FOURS + n % FOURS]; }
      let query = first + n / FOURS;
      arena[out + query * pitch + n % FOURS] = sum * factors[query];
    }
  }
}

// Where the row of a slot begins; slots beyond the last are the first ones again.
fn row_of(slot: u32) -> u32 { return select(slot, slot - p.slots, slot >= p.slots) * p.row; }

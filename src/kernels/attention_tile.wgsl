// attention for many queries: those of one head, QUERIES at a time, share the keys and values they read
// one workgroup per head and tile of queries, HEAD / 2 threads or 64; grid (heads, tiles)
struct Params {
  q: u32, q_stride: u32, out: u32, out_stride: u32,
  positions: u32, positions_stride: u32, last: u32, last_stride: u32,
  heads_per_kv: u32, row: u32, slots: u32, window: u32, tokens: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> keys: array<KvWord>;
@group(0) @binding(3) var<storage, read> values: array<KvWord>;

// HEAD, the size of a head, a multiple of 32, and THREADS, a multiple of 64, come before this text.
const QUERIES: u32 = 16u;
const KEYS: u32 = 64u;   // of a step
const CHUNK: u32 = 8u;   // fours of a head that scores are summed over at a time
const QUERY_FOURS: u32 = QUERIES * KEYS / THREADS / 4u;  // fours of queries of whose scores a thread computes one key's
const PARTS: u32 = THREADS / QUERIES;                    // threads that share the weights of a query
const FOURS: u32 = HEAD / 4u;
const SUMS: u32 = QUERIES / 2u;                          // of weighted values that a thread has
var<workgroup> q_tile: array<vec4f, CHUNK * QUERIES>;    // [CHUNK][QUERIES]
var<workgroup> k_tile: array<vec4f, CHUNK * KEYS>;       // [CHUNK][KEYS]
// [KEYS][QUERIES]; then weights. Written by several threads: no vectors, see lib_tile.wgsl.
var<workgroup> scores: array<array<f32, 4>, KEYS * QUERIES / 4u>;
var<workgroup> partial: array<f32, THREADS>;             // [PARTS][QUERIES]
var<workgroup> factors: array<array<f32, 4>, QUERIES / 4u>;
var<workgroup> seen: vec2u;                              // the first key of any query, and the end of their keys

// The keys that a token sees: first, end. Beyond the last token, its own once more.
fn seen_by(token: u32) -> vec2u {
  let t = min(token, p.tokens - 1u);
  let position = u32(arena[p.positions + t * p.positions_stride]);
  var first = 0u;
  if (p.window > 0u && position >= p.window) { first = position + 1u - p.window; }
  return vec2u(first, u32(arena[p.last + t * p.last_stride]) + 1u);
}

// Scores of KEYS keys from `first` on with all queries.
fn score(first: u32, first_token: u32, head: u32, base: u32, thread: u32) {
  var sums: array<vec4f, QUERY_FOURS>;
  for (var d = 0u; d < HEAD; d += CHUNK * 4u) {
    workgroupBarrier();
    for (var n = thread; n < CHUNK * QUERIES; n += THREADS) {
      let t = min(first_token + n / CHUNK, p.tokens - 1u);
      let at = p.q + t * p.q_stride + head * HEAD + d + n % CHUNK * 4u;
      q_tile[n % CHUNK * QUERIES + n / CHUNK] = vec4f(arena[at], arena[at + 1u], arena[at + 2u], arena[at + 3u]);
    }
    for (var n = thread; n < CHUNK * KEYS; n += THREADS) {
      let at = (first + n / CHUNK) % p.slots * p.row + base + d / 4u + n % CHUNK;
      k_tile[n % CHUNK * KEYS + n / CHUNK] = kv_four(key_at(at));
    }
    workgroupBarrier();
    for (var c = 0u; c < CHUNK; c++) {
      let key = k_tile[c * KEYS + thread % KEYS];
      for (var i = 0u; i < QUERY_FOURS; i++) {
        let at = c * QUERIES + (thread / KEYS * QUERY_FOURS + i) * 4u;
        sums[i] += vec4f(dot(key, q_tile[at]), dot(key, q_tile[at + 1u]), dot(key, q_tile[at + 2u]),
                         dot(key, q_tile[at + 3u]));
      }
    }
  }
  for (var i = 0u; i < QUERY_FOURS; i++) {
    scores[thread % KEYS * (QUERIES / 4u) + thread / KEYS * QUERY_FOURS + i] =
        array<f32, 4>(sums[i].x, sums[i].y, sums[i].z, sums[i].w);
  }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let head = group.x;
  let first_token = group.y * QUERIES;
  if (thread == 0u) {
    var all = seen_by(first_token);
    for (var i = 1u; i < QUERIES; i++) {
      let one = seen_by(first_token + i);
      all = vec2u(min(all.x, one.x), max(all.y, one.y));
    }
    seen = all;
  }
  let bounds = workgroupUniformLoad(&seen);
  let base = head / p.heads_per_kv * FOURS;

  // For weights, a thread has one query and every PARTS-th key of it; for the sums of values, four columns of half the
  // queries.
  let query = thread % QUERIES;
  let part = thread / QUERIES;
  let mine = seen_by(first_token + query);
  var largest = -3.0e38;
  var total = 0.0;
  let four = thread % FOURS;
  let half = thread / FOURS;  // with small heads there are threads beyond the second half
  var sums: array<vec4f, SUMS>;
  for (var first = bounds.x; first < bounds.y; first += KEYS) {
    score(first, first_token, head, base, thread);
    workgroupBarrier();
    var most = largest;
    for (var k = part; k < KEYS; k += PARTS) {
      if (first + k >= mine.x && first + k < mine.y) { most = max(most, scores[k * 4u + query / 4u][query % 4u]); }
    }
    partial[part * QUERIES + query] = most;
    workgroupBarrier();
    for (var i = 0u; i < PARTS; i++) { most = max(most, partial[i * QUERIES + query]); }
    let rescale = exp(largest - most);
    largest = most;
    total *= rescale;
    for (var k = part; k < KEYS; k += PARTS) {
      var weight = 0.0;
      if (first + k >= mine.x && first + k < mine.y) { weight = exp(scores[k * 4u + query / 4u][query % 4u] - most); }
      scores[k * 4u + query / 4u][query % 4u] = weight;
      total += weight;
    }
    if (part == 0u) { factors[query / 4u][query % 4u] = rescale; }
    workgroupBarrier();
    if (half < 2u) {
      for (var i = 0u; i < SUMS; i++) { sums[i] *= factors[half * 2u + i / 4u][i % 4u]; }
      let count = min(KEYS, bounds.y - first);
      var slot = first % p.slots;
      for (var k = 0u; k < count; k++) {
        let value = kv_four(value_at(slot * p.row + base + four));
        for (var i = 0u; i < SUMS / 4u; i++) {
          let at = k * 4u + half * 2u + i;
          for (var j = 0u; j < 4u; j++) { sums[i * 4u + j] += scores[at][j] * value; }
        }
        slot++;
        if (slot == p.slots) { slot = 0u; }
      }
    }
  }

  workgroupBarrier();
  partial[part * QUERIES + query] = total;
  workgroupBarrier();
  if (part == 0u) {
    for (var i = 1u; i < PARTS; i++) { total += partial[i * QUERIES + query]; }
    factors[query / 4u][query % 4u] = 1.0 / total;
  }
  workgroupBarrier();
  if (half >= 2u) { return; }
  for (var i = 0u; i < SUMS; i++) {
    let t = first_token + half * SUMS + i;
    if (t < p.tokens) {
      let out = p.out + t * p.out_stride + head * HEAD + four * 4u;
      let sum = sums[i] * factors[half * 2u + i / 4u][i % 4u];
      for (var j = 0u; j < 4u; j++) { arena[out + j] = sum[j]; }
    }
  }
}

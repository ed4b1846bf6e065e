// Attention of QUERIES heads over one part of the keys and values that they share.
// Before this text come WG threads; HEAD, the size of a head; QUERIES, which divide the heads of a key head; RUNS of a
// step; AHEAD, the values that a thread reads at a time; all powers of two, HEAD / 4 at most WG, AHEAD at most STEP / SHARES. What is an array in a function is indexed by what is known once its loops are
// unrolled, so that it stays in registers; loops with barriers may not be, hence some comparisons.
const FOURS: u32 = HEAD / 4u;
const LANES: u32 = min(16u, FOURS);    // threads that share a key
const OWN: u32 = FOURS / LANES;        // fours of a key that a thread has
const KEYS: u32 = WG / LANES;          // keys of a run
const STEP: u32 = KEYS * RUNS;
const SHARES: u32 = WG / FOURS;        // of the keys of a step, when values are summed
const OWNERS: u32 = WG / QUERIES;      // threads that compute the weights of a query
const TOGETHER: u32 = max(1u, QUERIES / SHARES);  // queries whose shares are summed at a time
const LANE_PITCH: u32 = LANES + 1u;    // one more, lest threads wait for the same bank of memory
const STEP_PITCH: u32 = STEP + 1u;
const PAIRS: u32 = FOURS / 2u;         // fours of half a head
const SPANS: u32 = max(1u, PAIRS / LANES);
// Arrays of arrays, so that one index to be kept within bounds serves many.
var<workgroup> queries: array<array<vec4f, FOURS>, max(QUERIES, SHARES)>;  // then sums, [TOGETHER, SHARES][FOURS]
// At first, of the squares of each head SPANS rows.
var<workgroup> lane_sums: array<array<f32, LANE_PITCH>, max(KEYS * QUERIES, (QUERIES + 2u) * SPANS)>;
var<workgroup> scores: array<array<f32, STEP_PITCH>, QUERIES>;  // at the end weights of owners
var<workgroup> weights: array<array<f32, QUERIES>, STEP>;
var<workgroup> factors: array<f32, QUERIES>;

// The kernel says with FRESH whether the last key of a part may come from fresh_key() and fresh_value(), not from the
// ring, and with query_scale() what the scores of a query are multiplied by.
struct Part {
  count: u32,  // keys
  held: u32,   // of them in the ring
  start: u32,  // the slot of the first
  base: u32,   // fours of a row before this head
}
alias SomeKeys = array<KvFour, RUNS * OWN>;
alias SomeValues = array<KvFour, AHEAD>;

fn number(at: u32) -> f32 { return arena[at / 4u][at % 4u]; }

// Where the row of a slot begins; slots beyond the last are the first ones again.
fn row_of(slot: u32) -> u32 { return select(slot, slot - p.slots, slot >= p.slots) * p.row; }

// What a thread has of the keys of a step, of the values from `first` on. Memory is slow to answer, so they are asked for
// long before they are needed.
fn ask_keys(part: Part, first: u32, thread: u32) -> SomeKeys {
  var some = SomeKeys();
  for (var r = 0u; r < RUNS; r++) {
    let key = first + r * KEYS + thread / LANES;
    if (key < part.held) {
      let at = row_of(part.start + key) + part.base + thread % LANES;
      for (var i = 0u; i < OWN; i++) { some[r * OWN + i] = key_at(at + i * LANES); }
    }
  }
  return some;
}

fn ask_values(part: Part, first: u32, thread: u32) -> SomeValues {
  var some = SomeValues();
  for (var i = 0u; i < AHEAD; i++) {
    let key = first + i * SHARES + thread / FOURS;
    if (key < part.held) { some[i] = value_at(row_of(part.start + key) + part.base + thread % FOURS); }
  }
  return some;
}

// Of the queries that are in `queries`, with the first keys and values already asked for. Row n of the result begins at
// four out + n * pitch of the arena.
fn attend(part: Part, out: u32, pitch: u32, thread: u32, first_keys: SomeKeys, first_values: SomeValues) {
  let lane = thread % LANES;
  let own_key = thread / LANES;
  let own_query = thread / OWNERS;
  let owner = thread % OWNERS;
  let four = thread % FOURS;
  let share = thread / FOURS;
  var some_keys = first_keys;
  var some_values = first_values;
  var largest = -3.0e38;
  var total = 0.0;
  var sums: array<vec4f, QUERIES>;
  for (var tile = 0u; tile < part.count; tile += STEP) {
    let left = min(STEP, part.count - tile);

    var dots = array<f32, RUNS * QUERIES>();  // with a value: else it might keep that of the last step
    for (var i = 0u; i < OWN; i++) {
      var key_fours = array<vec4f, RUNS>();
      for (var r = 0u; r < RUNS; r++) {
        key_fours[r] = kv_four(some_keys[r * OWN + i]);
        if (FRESH && tile + r * KEYS + own_key == part.held) { key_fours[r] = fresh_key(i * LANES + lane); }
      }
      for (var n = 0u; n < QUERIES; n++) {
        let query = queries[n][i * LANES + lane];
        for (var r = 0u; r < RUNS; r++) { dots[r * QUERIES + n] += dot(query, key_fours[r]); }
      }
    }
    some_keys = ask_keys(part, tile + STEP, thread);
    for (var r = 0u; r < RUNS; r++) {
      if (r * KEYS >= left) {
        for (var n = thread; n < KEYS * QUERIES; n += WG) {
          scores[n % QUERIES][r * KEYS + n / QUERIES] = -3.0e38;
        }
        continue;
      }
      workgroupBarrier();
      for (var n = 0u; n < QUERIES; n++) {
        var lane_sum = 0.0;
        for (var i = 0u; i < RUNS; i++) {
          if (i == r) { lane_sum = dots[i * QUERIES + n]; }
        }
        lane_sums[own_key * QUERIES + n][lane] = lane_sum;
      }
      workgroupBarrier();
      for (var n = thread; n < KEYS * QUERIES; n += WG) {
        var sum = 0.0;
        for (var i = 0u; i < LANES; i++) { sum += lane_sums[n][i]; }
        let key = r * KEYS + n / QUERIES;
        scores[n % QUERIES][key] = select(-3.0e38, sum * query_scale(n % QUERIES), key < left);
      }
    }
    workgroupBarrier();

    var most = largest;
    for (var k = 0u; k < STEP; k++) { most = max(most, scores[own_query][k]); }
    let rescale = exp(largest - most);
    largest = most;
    total *= rescale;
    for (var k = owner; k < STEP; k += OWNERS) {
      let weight = exp(scores[own_query][k] - most);
      weights[k][own_query] = weight;
      total += weight;
    }
    if (owner == 0u) { factors[own_query] = rescale; }
    workgroupBarrier();

    for (var n = 0u; n < QUERIES; n++) { sums[n] *= factors[n]; }
    for (var first = 0u; first < left; first += SHARES * AHEAD) {
      let now = some_values;
      some_values = ask_values(part, tile + first + SHARES * AHEAD, thread);
      for (var i = 0u; i < AHEAD; i++) {
        let key = first + i * SHARES + share;
        var value = kv_four(now[i]);
        if (FRESH && tile + key == part.held) { value = fresh_value(four); }
        for (var n = 0u; n < QUERIES; n++) { sums[n] += weights[key][n] * value; }
      }
    }
  }

  if (owner < STEP) { scores[own_query][owner] = total; }  // the others have none
  workgroupBarrier();
  let whole = p.parts == 1u;
  if (owner == 0u) {
    total = 0.0;
    for (var i = 0u; i < min(OWNERS, STEP); i++) { total += scores[own_query][i]; }
    factors[own_query] = select(1.0, 1.0 / total, whole);
    if (!whole) { arena[out + own_query * pitch + FOURS] = vec4f(largest, total, 0.0, 0.0); }
  }
  for (var first = 0u; first < QUERIES; first += TOGETHER) {
    workgroupBarrier();
    for (var n = 0u; n < QUERIES; n++) {
      if (n / TOGETHER * TOGETHER == first) { queries[(n - first) * SHARES + share][four] = sums[n]; }
    }
    workgroupBarrier();
    for (var n = thread; n < TOGETHER * FOURS; n += WG) {
      var sum = vec4f();
      for (var i = 0u; i < SHARES; i++) { sum += queries[n / FOURS * SHARES + i][n % FOURS]; }
      let query = first + n / FOURS;
      arena[out + query * pitch + n % FOURS] = sum * factors[query];
    }
  }
}

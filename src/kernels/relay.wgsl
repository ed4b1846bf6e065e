// Products with a vector one after another in one dispatch, the legs of a relay: what one leg gives, the next multiplies.
// Every workgroup takes its share of a leg's rows, then its share of the next; it waits for what others found, number by
// number, and has asked for its first weights before. A number is handed over in `mail`, where 0 says that it is not there yet
// (a 0 goes as -0), so that it is its own signal: order between two places in memory is nobody's promise. All workgroups
// have to run at the same time: without legs the dispatch counts how many do. Who waits in vain gives up, and what it
// computes is no number. Before the first leg the parts of attention are joined, if that is what it multiplies.
struct Leg {
  form: u32, flags: u32,  // how its weights are read; bits below
  // The vector, as in lib_vector_norms.wgsl: places in the arena and in the mail, the weights of norms in fours.
  x: u32, added: u32, sum: u32, next: u32, x_mail: u32, added_mail: u32, sum_mail: u32, next_mail: u32,
  eps: f32, norm_scale: f32, sum_scale: f32, next_eps: f32, next_scale: f32, norm_weight: u32, next_weight: u32,
  // A workgroup takes `share` rows, a multiple of 4; of these a team of `lanes` threads takes every `teams`-th, `each` of
  // them, two at a time, `step` bytes from two to two and `apart` within, and adds up after `batch`. Of a pair of
  // matrices the two are a row of each.
  units: u32, lanes: u32, teams: u32, each: u32, batch: u32, rows: u32, share: u32,
  begin: u32, row_bytes: u32, step: u32, apart: u32,
  // Results: of up to three matrices one after the other, or of a pair; for later dispatches, and for later legs.
  out: u32, out_2: u32, out_3: u32, rows_1: u32, rows_2: u32, scale: f32, scale_2: f32, scale_3: f32,
  other: u32, out_mail: u32, unused: u32, unused_2: u32,
}
struct Params {
  count: u32,                    // of legs
  clear: u32, clear_count: u32,  // mail of the next dispatch, which nobody reads or writes now
  patience: u32,                 // how often a thread asks in vain
  // Attention of one token in parts, as in attention_merge.wgsl: fours of all heads, of one, and of a workgroup.
  merged: u32, head_fours: u32, merge_share: u32, partial: u32, parts: u32, window: u32, position: u32,
  merge_out: u32, merge_mail: u32, unused: u32, unused_2: u32, unused_3: u32,
  legs: array<Leg, 8>,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<vec4f>;
@group(0) @binding(2) var<storage, read> w: array<vec4u>;
@group(0) @binding(3) var<storage, read_write> mail: array<atomic<u32>>;

const ADD: u32 = 1u;
const NEXT: u32 = 2u;
const KEEP: u32 = 4u;
const X_MAILED: u32 = 8u;
const ADDED_MAILED: u32 = 16u;
const MAIL_SUM: u32 = 32u;
const MAIL_NEXT: u32 = 64u;
const MAIL_OUT: u32 = 128u;
const PAIR: u32 = 256u;   // gelu(first matrix) * second
const OTHER: u32 = 512u;  // gelu(out) * what is at `other`
// Functions name a leg by its number, and read of it what they need when they do: it is not held in registers meanwhile.
fn has(n: u32, bit: u32) -> bool { return (p.legs[n].flags & bit) != 0u; }

fn word(i: u32) -> vec4u { return w[i]; }

struct Sixteen { a: vec4f, b: vec4f, c: vec4f, d: vec4f }

// Neighbouring threads have neighbouring quarters, sixteen numbers each, of a vector: in the mail, whose numbers are read
// one by one, the same one of each quarter lies side by side.
fn mail_place(i: u32) -> u32 { return (i & 0xfffffe00u) | ((i & 15u) << 5u) | ((i >> 4u) & 31u); }

fn post(vector: u32, i: u32, number: f32) {
  let bits = bitcast<u32>(number);
  atomicStore(&mail[vector + mail_place(i)], select(bits, 0x80000000u, bits == 0u));
}
fn post_four(vector: u32, i: u32, four: vec4f) {
  post(vector, i, four.x);
  post(vector, i + 1u, four.y);
  post(vector, i + 2u, four.z);
  post(vector, i + 3u, four.w);
}

fn mailed_four(at: u32) -> vec4u {
  return vec4u(atomicLoad(&mail[at]), atomicLoad(&mail[at + 32u]), atomicLoad(&mail[at + 64u]), atomicLoad(&mail[at + 96u]));
}

var<private> asked: u32;  // in vain, in all of the dispatch

fn mailed_quarter(vector: u32, quarter: u32) -> Sixteen {
  let at = vector + mail_place(quarter * 16u);
  var a = mailed_four(at);
  var b = mailed_four(at + 128u);
  var c = mailed_four(at + 256u);
  var d = mailed_four(at + 384u);
  while (any((a == vec4u()) | (b == vec4u()) | (c == vec4u()) | (d == vec4u())) && asked < p.patience) {
    // Only for the last one, lest those who wait take the memory's time; neighbours come together.
    loop {
      asked++;
      if (asked >= p.patience || atomicLoad(&mail[at + 480u]) != 0u) { break; }
    }
    a = mailed_four(at);
    b = mailed_four(at + 128u);
    c = mailed_four(at + 256u);
    d = mailed_four(at + 384u);
  }
  return Sixteen(arrived(a), arrived(b), arrived(c), arrived(d));
}
fn arrived(bits: vec4u) -> vec4f { return bitcast<vec4f>(select(bits, vec4u(0x7fc00000u), bits == vec4u())); }

fn stored_quarter(vector: u32, quarter: u32) -> Sixteen {
  let at = vector / 4u + quarter * 4u;
  return Sixteen(arena[at], arena[at + 1u], arena[at + 2u], arena[at + 3u]);
}

fn weights_quarter(first: u32, quarter: u32) -> Sixteen {
  let at = first + quarter * 4u;
  return Sixteen(bitcast<vec4f>(w[at]), bitcast<vec4f>(w[at + 1u]), bitcast<vec4f>(w[at + 2u]), bitcast<vec4f>(w[at + 3u]));
}

fn x_quarter(n: u32, quarter: u32) -> Sixteen {
  if (has(n, X_MAILED)) { return mailed_quarter(p.legs[n].x_mail, quarter); }
  return stored_quarter(p.legs[n].x, quarter);
}
fn added_quarter(n: u32, quarter: u32) -> Sixteen {
  if (has(n, ADDED_MAILED)) { return mailed_quarter(p.legs[n].added_mail, quarter); }
  return stored_quarter(p.legs[n].added, quarter);
}

fn times(x: Sixteen, y: Sixteen, factor: f32) -> Sixteen {
  return Sixteen(x.a * y.a * factor, x.b * y.b * factor, x.c * y.c * factor, x.d * y.d * factor);
}
fn squares_of(x: Sixteen) -> f32 { return (dot(x.a, x.a) + dot(x.b, x.b)) + (dot(x.c, x.c) + dot(x.d, x.d)); }

// For later dispatches and, if they are asked for, for later legs.
fn keep_sixteen(vector: u32, to_mail: bool, mail_vector: u32, quarter: u32, v: Sixteen) {
  let at = vector / 4u + quarter * 4u;
  arena[at] = v.a;
  arena[at + 1u] = v.b;
  arena[at + 2u] = v.c;
  arena[at + 3u] = v.d;
  if (to_mail) {
    post_four(mail_vector, quarter * 16u, v.a);
    post_four(mail_vector, quarter * 16u + 4u, v.b);
    post_four(mail_vector, quarter * 16u + 8u, v.c);
    post_four(mail_vector, quarter * 16u + 12u, v.d);
  }
}

// The vector's digits, twelve fours of words of each of UNITS units; then what threads found of sixteen rows each.
var<workgroup> words: array<vec4u, 12u * UNITS>;
var<workgroup> factors: array<array<f32, 4>, UNITS>;  // of each quarter what to multiply with
var<workgroup> sums: array<array<f32, 4>, UNITS>;     // and the sum
var<workgroup> totals: array<f32, MOST_ROWS>;  // of a pair by turns

const KEPT: u32 = UNITS;
fn keep_quarter(unit: u32, quarter: u32, high: vec4u, middle: vec4u, low: vec4u, factor: f32, sum: f32) {
  words[quarter * UNITS + unit] = high;
  words[(quarter + 4u) * UNITS + unit] = middle;
  words[(quarter + 8u) * UNITS + unit] = low;
  factors[unit][quarter] = factor;
  sums[unit][quarter] = sum;
}
fn plane(first: u32, unit: u32) -> Quarters {
  let at = first * UNITS + unit;
  return Quarters(words[at], words[at + UNITS], words[at + 2u * UNITS], words[at + 3u * UNITS]);
}
fn four(a: array<f32, 4>) -> vec4f { return vec4f(a[0], a[1], a[2], a[3]); }

// Of four neighbours, the sum of what all have at a thread's own place.
fn folded(four: vec4f, own: u32) -> f32 {
  let odd = (own & 1u) == 1u;
  let two = select(four.xz, four.yw, odd) + subgroupShuffleXor(select(four.yw, four.xz, odd), 1u);
  let late = (own & 2u) == 2u;
  return select(two.x, two.y, late) + subgroupShuffleXor(select(two.y, two.x, late), 2u);
}

// Four neighbouring threads, whose rows are the same, add up what they have of four rows, so that each has the sum of one. A
// thread keeps those of sixteen rows, every fourth from its own on.
fn gathered(before: vec4f, four: vec4f, i: u32, lane: u32) -> vec4f {
  return select(before, vec4f(folded(four, lane)), vec4u(i & 12u) == vec4u(0u, 4u, 8u, 12u));
}

// What the threads have in `words` of the rows from `done` to `end`: into totals, where `again` to what is there.
fn add_up(n: u32, done: u32, end: u32, again: bool, thread: u32) {
  workgroupBarrier();
  let teams = p.legs[n].teams;
  let lanes = p.legs[n].lanes;
  let pair = select(0u, 1u, has(n, PAIR));
  let most = p.legs[n].share << pair;
  // Four threads for every fourth row of sixteen.
  let tasks = (end - done + 15u) / 16u * teams * 16u;
  for (var first = 0u; first < tasks; first += WG) {
    let own = first + thread;
    var four = vec4f();
    if (own < tasks) {
      let begin = own / 16u * lanes;
      for (var i = own / 4u % 4u + own % 4u * 4u; i < lanes; i += 16u) { four += bitcast<vec4f>(words[begin + i]); }
    }
    let sum = folded(four, own);
    let i = done + own / 16u / teams * 16u + own % 4u * 4u + own / 4u % 4u;
    let row = ((((i >> pair) * teams) + own / 16u % teams) << pair) | (i & pair);
    if (own < tasks && i < end && row < most) { totals[row] = sum + select(0.0, totals[row], again); }
  }
}

fn totals4(n: u32) -> vec4f { return vec4f(totals[n], totals[n + 1u], totals[n + 2u], totals[n + 3u]); }

// Four rows of the workgroup, whose first is `first`, from its i-th on, to those who read them.
fn give(n: u32, first: u32, i: u32) {
  let row = first + i;
  var value: vec4f;
  var out = p.legs[n].out + row;
  if (has(n, PAIR)) {
    let a = totals4(2u * i);
    let b = totals4(2u * i + 4u);
    value = gelu4(vec4f(a.xz, b.xz) * p.legs[n].scale) * vec4f(a.yw, b.yw) * p.legs[n].scale_2;
  } else {
    var scale = p.legs[n].scale;
    let second = p.legs[n].rows_1;
    let third = second + p.legs[n].rows_2;
    if (row >= second) {
      out = p.legs[n].out_2 + (row - second);
      scale = p.legs[n].scale_2;
    }
    if (row >= third) {
      out = p.legs[n].out_3 + (row - third);
      scale = p.legs[n].scale_3;
    }
    value = totals4(i) * scale;
    if (has(n, OTHER)) { value = gelu4(value) * arena[(p.legs[n].other + row) / 4u]; }
  }
  arena[out / 4u] = value;
  if (has(n, MAIL_OUT)) { post_four(p.legs[n].out_mail, row, value); }
}

// Numbers of attention's result, a share for each workgroup; of each, a thread has one part of several.
fn merge(group: u32, groups: u32, thread: u32) {
  let position = arena[p.position / 4u][p.position % 4u];
  let seen = seen_at(position, position);
  let used = (seen.count + seen.share - 1u) / seen.share;
  let runs = WG / p.merge_share;
  let run = thread / p.merge_share;
  for (var first = group * p.merge_share; first < p.merged; first += groups * p.merge_share) {
    let four = first + thread % p.merge_share;
    let head = p.partial / 4u + four / p.head_fours * p.parts * (p.head_fours + 1u);
    var largest = -3.0e38;
    var total = 0.0;
    var sum = vec4f();
    if (run < runs && four < p.merged) {
      for (var i = run; i < used; i += runs) {
        let part = head + i * (p.head_fours + 1u);
        let stats = arena[part + p.head_fours].xy;
        let most = max(largest, stats.x);
        let before = exp(largest - most);
        let weight = exp(stats.x - most);
        total = total * before + weight * stats.y;
        sum = sum * before + weight * arena[part + four % p.head_fours];
        largest = most;
      }
    }
    workgroupBarrier();
    words[thread] = bitcast<vec4u>(sum);
    words[WG + thread] = bitcast<vec4u>(vec4f(largest, total, 0.0, 0.0));
    workgroupBarrier();
    if (thread < p.merge_share && four < p.merged) {
      for (var r = 1u; r < min(runs, used); r++) {
        largest = max(largest, bitcast<vec4f>(words[WG + r * p.merge_share + thread]).x);
      }
      sum = vec4f();
      total = 0.0;
      for (var r = 0u; r < min(runs, used); r++) {
        let stats = bitcast<vec4f>(words[WG + r * p.merge_share + thread]);
        let weight = exp(stats.x - largest);
        total += weight * stats.y;
        sum += weight * bitcast<vec4f>(words[r * p.merge_share + thread]);
      }
      arena[p.merge_out / 4u + four] = sum / total;
      post_four(p.merge_mail, four * 4u, sum / total);
    }
  }
}

// How many workgroups have come when the first one leaves again, after a while.
fn meet(thread: u32) {
  if (thread == 0u) {
    atomicAdd(&mail[0], 1u);
    for (var i = 0u; i < p.patience && atomicLoad(&mail[0]) < 0x7fffffffu; i++) {}
    atomicMax(&mail[1], 0xffffffffu - atomicLoad(&mail[0]));
  }
  workgroupBarrier();
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  if (p.count == 0u) {
    meet(thread);
    return;
  }
  for (var i = group.x * WG + thread; i < p.clear_count; i += groups.x * WG) { atomicStore(&mail[p.clear + i], 0u); }
  if (p.merged > 0u) { merge(group.x, groups.x, thread); }
  unit_begin(p.count);
  for (var n = 0u; n < p.count; n++) {
    let share = p.legs[n].share;
    for (var first = group.x * share; first < p.legs[n].rows; first += groups.x * share) {
      run_leg(n, first, thread);
      workgroupBarrier();
      for (var i = thread * 4u; i < min(share, p.legs[n].rows - first); i += WG * 4u) { give(n, first, i); }
    }
  }
}

// Products of rows with a vector by integers, for large matrices: LANES threads hold 64 numbers of the vector each, a unit, in
// registers, and go down the rows with it; WG / LANES teams of them have EACH rows a thread, in fours. The numbers are
// digits (lib_digits.wgsl). Where a vector has more than LANES units, there are several PASSES. The kernel gives
// product_four(at, left), word(i) of the weights, and row_begin(n), the first byte of a workgroup's n-th row, after which
// word() is asked for that row.
const TEAMS: u32 = WG / LANES;
const TOGETHER: u32 = TEAMS * EACH;  // rows of a workgroup
const TILE: u32 = select(0u, LANES * 64u, PASSES == 1u);  // numbers that are brought once
const SHARES: u32 = 8u;              // threads that add up four rows
// The digits of the vector, twelve fours of words of each unit; then what the threads found of BATCH rows of each team, four
// rows in an array. Arrays of arrays: one index to be kept within bounds serves them all. And only whole fours are written: a
// GPU may write a part of one as the whole.
var<workgroup> words: array<array<vec4u, LANES>, max(12u, BATCH / 4u * TEAMS)>;
var<workgroup> factors: array<array<f32, 4>, LANES>;  // of each quarter what to multiply with
var<workgroup> sums: array<array<f32, 4>, LANES>;     // and the sum
var<workgroup> shares: array<array<vec4f, SHARES>, BATCH / 4u * TEAMS>;
var<workgroup> totals: array<vec4f, TOGETHER / 4u>;

const KEPT: u32 = LANES;
fn keep_quarter(unit: u32, quarter: u32, high: vec4u, middle: vec4u, low: vec4u, factor: f32, sum: f32) {
  words[quarter][unit] = high;
  words[quarter + 4u][unit] = middle;
  words[quarter + 8u][unit] = low;
  factors[unit][quarter] = factor;
  sums[unit][quarter] = sum;
}

// Units from `first` on; beyond the last one zeros.
fn bring_vector(x: u32, first: u32, units: u32, thread: u32) {
  for (var done = 0u; done < LANES * 4u; done += WG) {
    let n = done + thread;
    var fours = array<vec4f, 4>();  // said outright: without a value some compilers keep that of the last time
    if (first + n / 4u < units) {
      for (var i = 0u; i < 4u; i++) { fours[i] = product_four(x + quarter_place(first * 4u + n) * 16u + i * 4u, 4u); }
    }
    tile_fours(n * 4u, fours[0], fours[1], fours[2], fours[3]);
  }
}

fn plane(first: u32, unit: u32) -> Quarters {
  return Quarters(words[first][unit], words[first + 1u][unit], words[first + 2u][unit], words[first + 3u][unit]);
}

fn four(a: array<f32, 4>) -> vec4f { return vec4f(a[0], a[1], a[2], a[3]); }

// A thread's i-th row, i even, or the one after it. Four are neighbours in memory.
fn row_words(i: u32, one: u32, team: u32, u: u32) -> UnitWords {
  let two = min(i, EACH - 2u) / 2u;
  return unit_words(row_begin(((two / 2u * TEAMS + team) * 2u + two % 2u) * 2u + one), u, u);  // who is even is seen
}

fn multiply_rows(group: vec3u, cols: u32, thread: u32) {
  unit_begin(cols);
  let units = cols / 64u;
  let lane = thread % LANES;
  let team = thread / LANES;
  var x = 0u;
  for (var first = 0u; first < units; first += LANES) {
    let u = min(first + lane, units - 1u);  // beyond the last one zeros are held
    var next = array<UnitWords, 2>(row_words(0u, 0u, team, u), row_words(0u, 1u, team, u));
    if (first == 0u) { x = begin_vector(group, thread); }
    if (!vector_in_tile()) {
      workgroupBarrier();
      bring_vector(x, first, units, thread);
    }
    workgroupBarrier();
    let held = UnitDigits(plane(0u, lane), plane(4u, lane), plane(8u, lane), four(sums[lane]), four(factors[lane]));
    for (var done = 0u; done < EACH; done += BATCH) {
      let end = min(done + BATCH, EACH);
      workgroupBarrier();
      var early: vec2f;
      for (var i = done; i < end; i += 2u) {
        var found: array<f32, 2>;
        for (var one = 0u; one < 2u; one++) {
          let now = next[one];
          next[one] = row_words(i + 2u, one, team, u);
          found[one] = unit_dot(now, u, held);
        }
        let late = vec2f(found[0], found[1]);
        if ((i & 2u) == 2u) { words[(i - done) / 4u * TEAMS + team][lane] = bitcast<vec4u>(vec4f(early, late)); }
        early = late;
      }
      workgroupBarrier();
      let fours = (end - done) / 4u * TEAMS;
      for (var n = thread; n < fours * SHARES; n += WG) {
        var share = vec4f();
        for (var i = n % SHARES; i < LANES; i += SHARES) { share += bitcast<vec4f>(words[n / SHARES][i]); }
        shares[n / SHARES][n % SHARES] = share;
      }
      workgroupBarrier();
      for (var n = thread; n < fours; n += WG) {
        var sum = vec4f();
        for (var i = 0u; i < SHARES; i++) { sum += shares[n][i]; }
        if (PASSES > 1u && first > 0u) { sum += totals[done / 4u * TEAMS + n]; }
        totals[done / 4u * TEAMS + n] = sum;
      }
    }
  }
  workgroupBarrier();
}

fn totals4(n: u32) -> vec4f { return totals[n / 4u]; }

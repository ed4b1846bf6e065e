// Products of rows with a vector by integers, for large matrices: LANES threads hold 64 numbers of the vector each, a unit, in
// registers, and go down the rows with it; WG / LANES teams of them have EACH rows a thread. The numbers are digits
// (lib_digits.wgsl). Where a vector has more than LANES units, there are several PASSES. The kernel gives
// product_four(at, left), word(i) of the weights, and row_begin(n), the first byte of a workgroup's n-th row, after which
// word() is asked for that row.
const TEAMS: u32 = WG / LANES;
const TOGETHER: u32 = TEAMS * EACH;  // rows of a workgroup
const TILE: u32 = select(0u, LANES * 64u, PASSES == 1u);  // numbers that are brought once
const SHARES: u32 = 8u;              // threads that add up a row
// The digits of the vector, 48 words of each unit; then what the threads of BATCH rows of each team found. Arrays of arrays:
// one index to be kept within bounds serves them all.
var<workgroup> words: array<array<u32, LANES>, max(48u, BATCH * TEAMS)>;
var<workgroup> quarters: array<array<vec2f, 4>, LANES>;  // of 16 numbers what to multiply with, and the sum
var<workgroup> shares: array<array<f32, SHARES>, BATCH * TEAMS>;
var<workgroup> totals: array<f32, TOGETHER>;

// A quarter, from the four `first` of those that are held on.
fn tile_fours(first: u32, a: vec4f, b: vec4f, c: vec4f, d: vec4f) {
  let up = digits_up(a, b, c, d);
  let sum = total((a + b) + (c + d));
  quarters[first / 16u][first / 4u % 4u] = vec2f(digits_down(up, sum), sum);
  let fours = array<vec4f, 4>(a, b, c, d);
  for (var i = 0u; i < 4u; i++) {
    let number = digits(fours[i], bitcast<f32>(up << 23u));
    let at = first % 16u + i;
    words[at][first / 16u] = number.x;
    words[at + 16u][first / 16u] = number.y;
    words[at + 32u][first / 16u] = number.z;
  }
}

// Units from `first` on; beyond the last one zeros.
fn bring_vector(x: u32, first: u32, units: u32, thread: u32) {
  for (var n = thread; n < LANES * 4u; n += WG) {
    var fours = array<vec4f, 4>();  // said outright: without a value some compilers keep that of the last time
    if (first + n / 4u < units) {
      for (var i = 0u; i < 4u; i++) { fours[i] = product_four(x + quarter_place(first * 4u + n) * 16u + i * 4u, 4u); }
    }
    tile_fours(n * 4u, fours[0], fours[1], fours[2], fours[3]);
  }
}

fn plane_four(at: u32, unit: u32) -> vec4u {
  return vec4u(words[at][unit], words[at + 1u][unit], words[at + 2u][unit], words[at + 3u][unit]);
}
fn plane(at: u32, unit: u32) -> Quarters {
  return Quarters(plane_four(at, unit), plane_four(at + 4u, unit), plane_four(at + 8u, unit), plane_four(at + 12u, unit));
}

fn rows_ahead(i: u32, team: u32, u: u32) -> array<UnitWords, AHEAD> {
  var ahead: array<UnitWords, AHEAD>;
  for (var r = 0u; r < AHEAD; r++) { ahead[r] = unit_words(row_begin(min(i + r, EACH - 1u) * TEAMS + team), u, u); }
  return ahead;
}

fn multiply_rows(group: vec3u, cols: u32, thread: u32) {
  unit_begin(cols);
  let units = cols / 64u;
  let lane = thread % LANES;
  let team = thread / LANES;
  var x = 0u;
  for (var first = 0u; first < units; first += LANES) {
    let u = min(first + lane, units - 1u);  // beyond the last one zeros are held
    var next = rows_ahead(0u, team, u);
    if (first == 0u) { x = begin_vector(group, thread); }
    if (!vector_in_tile()) {
      workgroupBarrier();
      bring_vector(x, first, units, thread);
    }
    workgroupBarrier();
    let a = quarters[lane][0];
    let b = quarters[lane][1];
    let c = quarters[lane][2];
    let d = quarters[lane][3];
    let held = UnitDigits(plane(0u, lane), plane(16u, lane), plane(32u, lane), vec4f(a.y, b.y, c.y, d.y),
                          vec4f(a.x, b.x, c.x, d.x));
    for (var done = 0u; done < EACH; done += BATCH) {
      let end = min(done + BATCH, EACH);
      workgroupBarrier();
      for (var i = done; i < end; i += AHEAD) {
        let now = next;
        next = rows_ahead(i + AHEAD, team, u);
        for (var r = 0u; r < AHEAD; r++) {
          words[(i + r - done) * TEAMS + team][lane] = bitcast<u32>(unit_dot(now[r], u, held));
        }
      }
      workgroupBarrier();
      let rows = (end - done) * TEAMS;
      for (var n = thread; n < rows * SHARES; n += WG) {
        var sum = 0.0;
        for (var i = n % SHARES; i < LANES; i += SHARES) { sum += bitcast<f32>(words[n / SHARES][i]); }
        shares[n / SHARES][n % SHARES] = sum;
      }
      workgroupBarrier();
      for (var n = thread; n < rows; n += WG) {
        var sum = 0.0;
        for (var i = 0u; i < SHARES; i++) { sum += shares[n][i]; }
        if (PASSES > 1u && first > 0u) { sum += totals[done * TEAMS + n]; }
        totals[done * TEAMS + n] = sum;
      }
    }
  }
  workgroupBarrier();
}

fn totals4(n: u32) -> vec4f { return vec4f(totals[n], totals[n + 1u], totals[n + 2u], totals[n + 3u]); }

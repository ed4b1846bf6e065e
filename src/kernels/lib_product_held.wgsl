// Products of rows with a vector by integers, for large matrices: LANES threads hold 64 numbers of the vector each, a unit, in
// registers, and go down the rows with it; WG / LANES teams of them have EACH rows a thread. The numbers are digits
// (lib_digits.wgsl). Where a vector has more than LANES units, there are several PASSES. The kernel gives
// product_four(at, left), word(i) of the weights, and row_begin(n), the first byte of a workgroup's n-th row, after which
// word() is asked for that row.
const TEAMS: u32 = WG / LANES;
const TOGETHER: u32 = TEAMS * EACH;  // rows of a workgroup
const TILE: u32 = select(0u, LANES * 64u, PASSES == 1u);  // numbers that are brought once
const SHARES: u32 = 8u;              // threads that add up a row
// The digits of the vector, 48 words of each unit; then what the threads of BATCH rows of each team found.
var<workgroup> words: array<u32, max(48u, BATCH * TEAMS) * LANES>;
var<workgroup> quarters: array<vec2f, 4u * LANES>;  // of 16 numbers what to multiply with, and the sum
var<workgroup> shares: array<f32, SHARES * BATCH * TEAMS>;
var<workgroup> totals: array<f32, TOGETHER>;

// A quarter, from the four `first` of those that are held on.
fn tile_fours(first: u32, a: vec4f, b: vec4f, c: vec4f, d: vec4f) {
  let up = digits_up(a, b, c, d);
  quarters[first / 4u] = vec2f(bitcast<f32>((254u - up) << 23u), total((a + b) + (c + d)));
  let fours = array<vec4f, 4>(a, b, c, d);
  for (var i = 0u; i < 4u; i++) {
    let number = digits(fours[i], bitcast<f32>(up << 23u));
    let at = (first % 16u + i) * LANES + first / 16u;
    words[at] = number.x;
    words[at + 16u * LANES] = number.y;
    words[at + 32u * LANES] = number.z;
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

fn plane_four(at: u32) -> vec4u { return vec4u(words[at], words[at + LANES], words[at + 2u * LANES], words[at + 3u * LANES]); }
fn plane(at: u32) -> Quarters {
  return Quarters(plane_four(at), plane_four(at + 4u * LANES), plane_four(at + 8u * LANES), plane_four(at + 12u * LANES));
}

fn rows_ahead(i: u32, team: u32, u: u32) -> array<UnitWords, AHEAD> {
  var ahead: array<UnitWords, AHEAD>;
  for (var r = 0u; r < AHEAD; r++) { ahead[r] = unit_words(row_begin(min(i + r, EACH - 1u) * TEAMS + team), u); }
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
    let a = quarters[lane * 4u];
    let b = quarters[lane * 4u + 1u];
    let c = quarters[lane * 4u + 2u];
    let d = quarters[lane * 4u + 3u];
    let held = UnitDigits(plane(lane), plane(lane + 16u * LANES), plane(lane + 32u * LANES), vec4f(a.y, b.y, c.y, d.y),
                    vec4f(a.x, b.x, c.x, d.x));
    for (var done = 0u; done < EACH; done += BATCH) {
      let end = min(done + BATCH, EACH);
      workgroupBarrier();
      for (var i = done; i < end; i += AHEAD) {
        let now = next;
        next = rows_ahead(i + AHEAD, team, u);
        for (var r = 0u; r < AHEAD; r++) {
          words[((i + r - done) * TEAMS + team) * LANES + lane] = bitcast<u32>(unit_dot(now[r], u, held));
        }
      }
      workgroupBarrier();
      let rows = (end - done) * TEAMS;
      for (var n = thread; n < rows * SHARES; n += WG) {
        var sum = 0.0;
        for (var i = n % SHARES; i < LANES; i += SHARES) { sum += bitcast<f32>(words[n / SHARES * LANES + i]); }
        shares[n] = sum;
      }
      workgroupBarrier();
      for (var n = thread; n < rows; n += WG) {
        var sum = 0.0;
        for (var i = 0u; i < SHARES; i++) { sum += shares[n * SHARES + i]; }
        if (PASSES > 1u && first > 0u) { sum += totals[done * TEAMS + n]; }
        totals[done * TEAMS + n] = sum;
      }
    }
  }
  workgroupBarrier();
}

fn totals4(n: u32) -> vec4f { return vec4f(totals[n], totals[n + 1u], totals[n + 2u], totals[n + 3u]); }

// Products of rows with a vector by integers, for large matrices: LANES threads hold 64 numbers of the vector each, a unit, in
// registers, and go down the rows with it; WG / LANES teams of them have EACH rows a thread. Sixteen numbers are brought near
// 2^22 by a power of two and rounded; as three digits of base 256 they are what dot4I8Packed multiplies with four weights at
// a time. Rounding loses 2^-22 of the largest of the sixteen at most, no more than sums of floats do. Where a vector has
// more than LANES units, there are several PASSES. A lib_words_*.wgsl says how a type is read: unit_words(row, u), the
// weights of unit u in the row that begins at byte `row`, and unit_quarters(words, u), what they are before they are scaled.
// A lib_held_*.wgsl has unit_place(n), the four of the vector that is the n-th when units lie one after another, and
// unit_dot(words, u, held). The kernel gives product_four(at, left), word(i) of the weights, and row_begin(n), the first
// byte of a workgroup's n-th row, after which word() is asked for that row.
const TEAMS: u32 = WG / LANES;
const TOGETHER: u32 = TEAMS * EACH;  // rows of a workgroup
const SHARES: u32 = 8u;              // threads that add up a row
// The digits of the vector, 48 words of each unit; then what the threads of BATCH rows of each team found.
var<workgroup> words: array<u32, max(48u, BATCH * TEAMS) * LANES>;
var<workgroup> quarters: array<vec2f, 4u * LANES>;  // of 16 numbers what to multiply with, and the sum
var<workgroup> shares: array<f32, SHARES * BATCH * TEAMS>;
var<workgroup> totals: array<f32, TOGETHER>;

struct Held { high: Quarters, middle: Quarters, low: Quarters, sums: vec4f, factors: vec4f }

fn most4(v: vec4f) -> f32 { return max(max(abs(v.x), abs(v.y)), max(abs(v.z), abs(v.w))); }

// Four integers as digits of base 256, from -128 to 127: high, middle, low.
fn digits(four: vec4f, factor: f32) -> vec3u {
  let t = bitcast<vec4u>(fma(four, vec4f(factor), vec4f(12582912.0))) + vec4u(0x408080u);
  let outer = (t.xz & vec2u(0xff00ffu)) | ((t.yw & vec2u(0xff00ffu)) << vec2u(8u));
  let inner = ((t.xz >> vec2u(8u)) & vec2u(0xffu)) | (t.yw & vec2u(0xff00u));
  return vec3u((outer.x >> 16u) | (outer.y & 0xffff0000u), inner.x | (inner.y << 16u), (outer.x & 0xffffu) | (outer.y << 16u)) ^
         vec3u(0x80808080u);
}

// Units from `first` on; beyond the last one zeros.
fn bring_vector(x: u32, first: u32, units: u32, thread: u32) {
  for (var n = thread; n < LANES * 4u; n += WG) {
    var fours = array<vec4f, 4>();  // said outright: without a value some compilers keep that of the last time
    if (first + n / 4u < units) {
      for (var i = 0u; i < 4u; i++) { fours[i] = product_four(x + unit_place(first * 16u + n * 4u + i) * 4u, 4u); }
    }
    let most = max(max(most4(fours[0]), most4(fours[1])), max(most4(fours[2]), most4(fours[3])));
    // By the bits of the exponent, so that it is exact.
    let up = clamp(275u - (bitcast<u32>(most) >> 23u), 1u, 253u);
    quarters[n] = vec2f(bitcast<f32>((254u - up) << 23u), total((fours[0] + fours[1]) + (fours[2] + fours[3])));
    for (var i = 0u; i < 4u; i++) {
      let d = digits(fours[i], bitcast<f32>(up << 23u));
      let at = (n % 4u * 4u + i) * LANES + n / 4u;
      words[at] = d.x;
      words[at + 16u * LANES] = d.y;
      words[at + 32u * LANES] = d.z;
    }
  }
  workgroupBarrier();
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

fn multiply_rows(x: u32, cols: u32, thread: u32) {
  unit_begin(cols);
  let units = cols / 64u;
  let lane = thread % LANES;
  let team = thread / LANES;
  for (var first = 0u; first < units; first += LANES) {
    let u = min(first + lane, units - 1u);  // beyond the last one zeros are held
    var next = rows_ahead(0u, team, u);
    workgroupBarrier();
    bring_vector(x, first, units, thread);
    let a = quarters[lane * 4u];
    let b = quarters[lane * 4u + 1u];
    let c = quarters[lane * 4u + 2u];
    let d = quarters[lane * 4u + 3u];
    let held = Held(plane(lane), plane(lane + 16u * LANES), plane(lane + 32u * LANES), vec4f(a.y, b.y, c.y, d.y),
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

// Sixteen weights, below 128, times sixteen numbers. Each sum begins with 1.5 * 2^23, so that its bits are those of a float.
fn quarter_dot(q: vec4u, high: vec4u, middle: vec4u, low: vec4u) -> f32 {
  let f = bitcast<vec3f>(vec3i(add_dots(q, high), add_dots(q, middle), add_dots(q, low))) - vec3f(12582912.0);
  return fma(f.x, 65536.0, fma(f.y, 256.0, f.z));
}
fn add_dots(q: vec4u, x: vec4u) -> i32 {
  return dot4I8Packed(q.w, x.w) + (dot4I8Packed(q.z, x.z) + (dot4I8Packed(q.y, x.y) + (dot4I8Packed(q.x, x.x) + 0x4b400000)));
}

fn quarter_dots(q: Quarters, x: Held) -> vec4f {
  return vec4f(quarter_dot(q.a, x.high.a, x.middle.a, x.low.a), quarter_dot(q.b, x.high.b, x.middle.b, x.low.b),
               quarter_dot(q.c, x.high.c, x.middle.c, x.low.c), quarter_dot(q.d, x.high.d, x.middle.d, x.low.d));
}

fn totals4(n: u32) -> vec4f { return vec4f(totals[n], totals[n + 1u], totals[n + 2u], totals[n + 3u]); }

// As lib_product.wgsl, by integers: the tile has the digits of the vector (lib_digits.wgsl).
const TOGETHER: u32 = WG / LANES * ROWS;  // rows of a workgroup
const TILE: u32 = 3072u;                  // numbers
const CHUNK: u32 = TILE / 64u;            // units
// The same part of all units side by side, so that neighbouring threads read neighbours.
const PITCH: u32 = CHUNK + 1u;
var<workgroup> x_digits: array<vec4u, 12u * PITCH>;  // [high, middle, low][quarter][unit]
var<workgroup> x_scales: array<f32, 8u * PITCH>;     // [factor, sum][quarter][unit]

// From four `first` of the chunk on, a quarter.
fn tile_fours(first: u32, a: vec4f, b: vec4f, c: vec4f, d: vec4f) {
  let at = ((first >> 2u) & 3u) * PITCH + first / 16u;
  let up = digits_up(a, b, c, d);
  x_scales[at] = bitcast<f32>((254u - up) << 23u);
  x_scales[at + 4u * PITCH] = total((a + b) + (c + d));
  let factor = bitcast<f32>(up << 23u);
  let i = digits(a, factor);
  let j = digits(b, factor);
  let k = digits(c, factor);
  let l = digits(d, factor);
  x_digits[at] = vec4u(i.x, j.x, k.x, l.x);
  x_digits[at + 4u * PITCH] = vec4u(i.y, j.y, k.y, l.y);
  x_digits[at + 8u * PITCH] = vec4u(i.z, j.z, k.z, l.z);
}

fn tile_plane(at: u32) -> Quarters {
  return Quarters(x_digits[at], x_digits[at + PITCH], x_digits[at + 2u * PITCH], x_digits[at + 3u * PITCH]);
}
fn tile_scales(at: u32) -> vec4f {
  return vec4f(x_scales[at], x_scales[at + PITCH], x_scales[at + 2u * PITCH], x_scales[at + 3u * PITCH]);
}

fn words_of(rows: array<u32, ROWS>, u: u32, units: u32) -> array<UnitWords, ROWS> {
  var words: array<UnitWords, ROWS>;
  for (var r = 0u; r < ROWS; r++) {
    take(r);
    words[r] = unit_words(rows[r], min(u, units - 1u));
  }
  return words;
}

fn row_sums(group: vec3u, rows: array<u32, ROWS>, cols: u32, thread: u32) -> array<f32, ROWS> {
  unit_begin(cols);
  let units = cols / 64u;
  var sums: array<f32, ROWS>;
  var u = thread % LANES;
  var next = words_of(rows, u, units);
  let x = begin_vector(group, thread);
  for (var first = 0u; first < units; first += CHUNK) {
    let end = min(first + CHUNK, units);
    if (!vector_in_tile()) {
      workgroupBarrier();
      for (var n = thread; n < (end - first) * 4u; n += WG) {
        let at = x + quarter_place(first * 4u + n) * 16u;
        tile_fours(n * 4u, product_four(at, 4u), product_four(at + 4u, 4u), product_four(at + 8u, 4u),
                   product_four(at + 12u, 4u));
      }
    }
    workgroupBarrier();
    for (; u < end; u += LANES) {
      let words = next;
      next = words_of(rows, u + LANES, units);
      let at = u - first;
      let held = Held(tile_plane(at), tile_plane(at + 4u * PITCH), tile_plane(at + 8u * PITCH),
                      tile_scales(at + 4u * PITCH), tile_scales(at));
      for (var r = 0u; r < ROWS; r++) { sums[r] += unit_dot(words[r], u, held); }
    }
  }
  return sums;
}

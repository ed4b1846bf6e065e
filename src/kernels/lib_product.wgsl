// Products of rows with a vector: every LANES threads of a workgroup share ROWS rows and go over their columns a unit at a
// time; the vector is in workgroup memory, CHUNK units of it at a time. A lib_unit_*.wgsl says what a unit is: UNIT
// elements of a row that a thread takes at once; unit_begin(cols), to be called first; unit_place(n), the unit that has the n-th four of a chunk, and the
// place it has there; UnitSums, what of the vector alone serves all rows, made by unit_sums(x); unit_words(row, u), the
// weights of unit u in the row that begins at byte `row`, and unit_dot(words, u, x, sums), their product. The kernel gives
// begin_vector(group, thread), the vector's place, product_four(at, left), word(i) of the weights, row_begin(n), the first byte of the workgroup's n-th row, and
// take(n): from here on word() is asked for that row, or one that is a multiple of ROWS away.
const TOGETHER: u32 = WG / LANES * ROWS;  // rows of a workgroup
const FOURS: u32 = UNIT / 4u;
const TILE: u32 = 3072u;  // numbers
const CHUNK: u32 = TILE / UNIT;
// The i-th fours of all units side by side, so that neighbouring threads read neighbours; an odd pitch, so that a
// unit's own lie in different banks when they are written.
const PITCH: u32 = CHUNK + 1u;
var<workgroup> x_tile: array<vec4f, FOURS * PITCH>;

// The weights of a unit, for each row. Beyond the last unit, that one again: cheaper than to ask.
fn words_of(rows: array<u32, ROWS>, u: u32, units: u32) -> array<UnitWords, ROWS> {
  var words: array<UnitWords, ROWS>;
  for (var r = 0u; r < ROWS; r++) {
    take(r);
    words[r] = unit_words(rows[r], min(u, units - 1u));
  }
  return words;
}

// The n-th four of the chunk that begins the vector.
fn tile_four(n: u32, four: vec4f) {
  let place = unit_place(n);
  x_tile[place.y * PITCH + place.x] = four;
}

fn quarter_place(n: u32) -> u32 { return n; }
fn tile_fours(first: u32, a: vec4f, b: vec4f, c: vec4f, d: vec4f) {
  tile_four(first, a);
  tile_four(first + 1u, b);
  tile_four(first + 2u, c);
  tile_four(first + 3u, d);
}

fn row_sums(group: vec3u, rows: array<u32, ROWS>, cols: u32, thread: u32) -> array<f32, ROWS> {
  unit_begin(cols);
  let units = (cols + UNIT - 1u) / UNIT;
  var sums: array<f32, ROWS>;
  var u = thread % LANES;
  // One unit ahead, so that memory is busy while a unit is multiplied and while the vector comes.
  var next = words_of(rows, u, units);
  let x = begin_vector(group, thread);
  for (var first = 0u; first < units; first += CHUNK) {
    let end = min(first + CHUNK, units);
    if (!vector_in_tile()) {
      workgroupBarrier();
      for (var n = thread; n < (end - first) * FOURS; n += WG) {
        let c = first * UNIT + n * 4u;
        var four = vec4f();
        if (c < cols) { four = product_four(x + c, cols - c); }
        tile_four(n, four);
      }
    }
    workgroupBarrier();
    for (; u < end; u += LANES) {
      let words = next;
      next = words_of(rows, u + LANES, units);
      var fours: array<vec4f, FOURS>;
      for (var i = 0u; i < FOURS; i++) { fours[i] = x_tile[i * PITCH + u - first]; }
      let x_sums = unit_sums(&fours);
      for (var r = 0u; r < ROWS; r++) { sums[r] += unit_dot(words[r], u, &fours, x_sums); }
    }
  }
  return sums;
}

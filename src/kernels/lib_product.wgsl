// Products of rows with a vector: every LANES threads of a workgroup share ROWS rows and go over their columns a unit at a
// time; the vector is in workgroup memory, CHUNK units of it at a time. A lib_chunk_*.wgsl says how: UNIT, the elements of a
// row that a thread takes at once; bring_chunk(x, first, end, cols, thread), which brings units there; tile_fours(first, ...),
// which puts four neighbouring fours there; unit_x(at), what rows need of the chunk's at-th unit; row_product(words, part,
// x), what that gives a row. (Products of all rows at once, returned as an array or added through a pointer, are slower.)
// unit_begin(cols) is called first; unit_words(row, u, part) are the weights of unit u in the row that begins at byte `row`,
// part being the unit's place in its block, or more by a multiple of 4. The kernel gives begin_vector(group, thread), the
// vector's place; product_four(at, left); word(i) of the weights; row_begin(n), the first byte of the workgroup's n-th row;
// and take(n): from here on word() is asked for that row, or one that is a multiple of ROWS away.
const TOGETHER: u32 = WG / LANES * ROWS;  // rows of a workgroup
const TILE: u32 = 3072u;                  // numbers
const CHUNK: u32 = TILE / UNIT;
// The same part of all units side by side, so that neighbouring threads read neighbours; an odd pitch, so that a
// unit's own lie in different banks when they are written.
const PITCH: u32 = CHUNK + 1u;

// A thread's units all have the same place, which the compiler then sees: shifts and masks are computed once.
fn part_of(u: u32, thread: u32) -> u32 {
  if (LANES % 4u == 0u) { return thread % LANES; }
  return u;
}

// The weights of a unit, for each row. Beyond the last unit, any of the last block: cheaper than to ask.
fn words_of(rows: array<u32, ROWS>, u: u32, units: u32, part: u32) -> array<UnitWords, ROWS> {
  var words: array<UnitWords, ROWS>;
  for (var r = 0u; r < ROWS; r++) {
    take(r);
    words[r] = unit_words(rows[r], min(u, units - 1u), part);
  }
  return words;
}

fn row_sums(group: vec3u, rows: array<u32, ROWS>, cols: u32, thread: u32) -> array<f32, ROWS> {
  unit_begin(cols);
  let units = (cols + UNIT - 1u) / UNIT;
  var sums: array<f32, ROWS>;
  var u = thread % LANES;
  // One unit ahead, so that memory is busy while a unit is multiplied and while the vector comes.
  var next = words_of(rows, u, units, part_of(u, thread));
  let vector = begin_vector(group, thread);
  for (var first = 0u; first < units; first += CHUNK) {
    let end = min(first + CHUNK, units);
    if (!vector_in_tile()) {
      workgroupBarrier();
      bring_chunk(vector, first, end, cols, thread);
    }
    workgroupBarrier();
    for (; u < end; u += LANES) {
      let words = next;
      next = words_of(rows, u + LANES, units, part_of(u + LANES, thread));
      let x = unit_x(u - first);
      for (var r = 0u; r < ROWS; r++) { sums[r] += row_product(words[r], part_of(u, thread), x); }
    }
  }
  return sums;
}

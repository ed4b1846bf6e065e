// The vector of lib_product.wgsl as floats. A lib_unit_*.wgsl says what a unit is: UNIT; unit_place(n), the unit that has the
// n-th four of a chunk, and the place it has there; UnitSums, what of the vector alone serves all rows, made by unit_sums(x);
// unit_dot(words, part, x, sums), the product.
const FOURS: u32 = UNIT / 4u;
var<workgroup> x_tile: array<array<vec4f, PITCH>, FOURS>;  // [four][unit]: one index to be kept within bounds

fn tile_four(n: u32, four: vec4f) {
  let place = unit_place(n);
  x_tile[place.y][place.x] = four;
}

fn quarter_place(n: u32) -> u32 { return n; }
fn tile_fours(first: u32, a: vec4f, b: vec4f, c: vec4f, d: vec4f) {
  if (first >= TILE / 4u) { return; }
  tile_four(first, a);
  tile_four(first + 1u, b);
  tile_four(first + 2u, c);
  tile_four(first + 3u, d);
}

fn bring_chunk(x: u32, first: u32, end: u32, cols: u32, thread: u32) {
  for (var n = thread; n < (end - first) * FOURS; n += WG) {
    let c = first * UNIT + n * 4u;
    var four = vec4f();
    if (c < cols) { four = product_four(x + c, cols - c); }
    tile_four(n, four);
  }
}

struct UnitFloats { fours: array<vec4f, FOURS>, sums: UnitSums }
fn unit_x(at: u32) -> UnitFloats {
  var fours: array<vec4f, FOURS>;
  for (var i = 0u; i < FOURS; i++) { fours[i] = x_tile[i][at]; }
  return UnitFloats(fours, unit_sums(&fours));
}
fn row_product(words: UnitWords, part: u32, x: UnitFloats) -> f32 {
  var fours = x.fours;
  return unit_dot(words, part, &fours, x.sums);
}

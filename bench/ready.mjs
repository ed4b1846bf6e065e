// Products that find the digits of their vector (lib_digits.wgsl) ready in a buffer, as if the kernel before had written them:
// what it would gain if kernels did. Nothing in the engine does so, and results are noise.

/** `binding` is that of the digits: of LANES neighbouring units all first fours, then all second ones. */
const digits = (binding) => `
@group(0) @binding(${binding}) var<storage, read> ready: array<vec4u>;
fn digits_at(u: u32) -> UnitDigits {
  let at = u / LANES * LANES * 14u + u % LANES;
  return UnitDigits(Quarters(ready[at], ready[at + LANES], ready[at + 2u * LANES], ready[at + 3u * LANES]),
                    Quarters(ready[at + 4u * LANES], ready[at + 5u * LANES], ready[at + 6u * LANES], ready[at + 7u * LANES]),
                    Quarters(ready[at + 8u * LANES], ready[at + 9u * LANES], ready[at + 10u * LANES], ready[at + 11u * LANES]),
                    bitcast<vec4f>(ready[at + 12u * LANES]), bitcast<vec4f>(ready[at + 13u * LANES]));
}
`;

/** Instead of lib_chunk_digits.wgsl and lib_product.wgsl, given the text of the latter: no workgroup memory, no barriers. */
export const readyProduct = (product, binding) => `${digits(binding)}
const UNIT: u32 = 64u;
const TOGETHER: u32 = WG / LANES * ROWS;
const TILE: u32 = 0u;
fn tile_fours(first: u32, a: vec4f, b: vec4f, c: vec4f, d: vec4f) {}
${product.match(/fn part_of[^]*?(?=fn row_sums)/)[0]}fn row_sums(group: vec3u, rows: array<u32, ROWS>, cols: u32, thread: u32) -> array<f32, ROWS> {
  unit_begin(cols);
  let units = cols / UNIT;
  var sums: array<f32, ROWS>;
  var next = words_of(rows, thread % LANES, units, part_of(thread % LANES, thread));
  for (var u = thread % LANES; u < units; u += LANES) {
    let words = next;
    next = words_of(rows, u + LANES, units, part_of(u + LANES, thread));
    let x = digits_at(u);
    for (var r = 0u; r < ROWS; r++) { sums[r] += unit_dot(words[r], part_of(u, thread), x); }
  }
  return sums;
}
`;

/** Instead of lib_product_held.wgsl, given its text. */
export const readyHeld = (held, binding) => digits(binding) + held.replace(/    if \(first == 0u\)[^]*?vec4f\(a\.x, b\.x, c\.x, d\.x\)\);\n/, '    let held = digits_at(u);\n');

// The vector of a product as it lies in the arena or, of COLS numbers in whole fours, from what lies before a residual and a
// norm, by the bits of norms(), which comes before this text:
//   sum = ADD: (added + x / sqrt(mean(x^2) + eps) * weight * norm_scale) * sum_scale, else x
//   vector = NEXT: sum / sqrt(mean(sum^2) + next_eps) * next_weight * next_scale, else sum
// Every workgroup finds both factors for itself; the first one of a token writes the sum, and with KEEP the vector, for
// those who read them later. (Of experts several are the first: they have neither ADD nor KEEP.) One kernel serves all of
// these: a GPU that has its instructions already begins sooner.
@group(0) @binding(NORMS) var<storage, read> norm_weight: array<vec4f>;
@group(0) @binding(NORMS + 1u) var<storage, read> next_weight: array<vec4f>;

const ADD: u32 = 1u;
const NEXT: u32 = 2u;
const KEEP: u32 = 4u;
fn norms_have(bit: u32) -> bool { return (norms() & bit) != 0u; }

const COUNT: u32 = COLS / 4u;
const QUARTERS: u32 = (COUNT + 3u) / 4u;            // fours of fours
const PER: u32 = (QUARTERS + WG - 1u) / WG * 4u;    // fours of a thread, neighbours
fn own_four(n: u32, thread: u32) -> u32 { return quarter_place(thread + n / 4u * WG) * 4u + n % 4u; }
var<private> x_first: u32;
var<private> added_first: u32;
var<private> factor: f32;
var<private> next_factor: f32;

// The products have a tile that takes all of it: it goes there at once, and nobody asks for it again.
fn vector_in_tile() -> bool { return COLS <= TILE && norms() > 0u; }

// Gives what product_four() is asked from.
fn begin_vector(group: vec3u, thread: u32) -> u32 {
  if (norms() == 0u) { return p.x + group.y * p.x_stride; }
  x_first = (p.x + group.y * p.x_stride) / 4u;
  added_first = (p.added + group.y * p.added_stride) / 4u;
  let add = norms_have(ADD);
  // All that may be needed is asked for at once, lest each wait for memory anew.
  var kept: array<vec4f, PER>;
  var added: array<vec4f, PER>;
  var weights: array<vec4f, PER>;
  var squares = 0.0;
  for (var n = 0u; n < PER; n++) {
    let i = own_four(n, thread);
    if (i < COUNT) {
      let x = arena[x_first + i];
      squares += dot(x, x);
      kept[n] = select(x, x * norm_weight[i], add);
      added[n] = arena[added_first + i];
      weights[n] = next_weight[i];
    }
  }
  // Each norm has its own sum: that of a residual, found from sums of its two sides, is nothing but rounding where they
  // nearly cancel.
  if (add) {
    factor = p.norm_scale / sqrt(reduce_sum(squares, thread) / f32(COLS) + p.eps);
    squares = 0.0;
    for (var n = 0u; n < PER; n++) {
      kept[n] = (added[n] + kept[n] * factor) * p.sum_scale;
      squares += dot(kept[n], kept[n]);
    }
  }
  if (norms_have(NEXT)) { next_factor = p.next_scale / sqrt(reduce_sum(squares, thread) / f32(COLS) + p.next_eps); }
  let first = group.x == 0u && group.z == 0u;
  for (var n = 0u; n < PER; n++) {
    let i = own_four(n, thread);
    if (first && add && i < COUNT) { arena[(p.sum + group.y * p.sum_stride) / 4u + i] = kept[n]; }
    if (norms_have(NEXT)) { kept[n] *= next_factor * weights[n]; }
    if (first && norms_have(KEEP) && i < COUNT) { arena[(p.next + group.y * p.next_stride) / 4u + i] = kept[n]; }
  }
  for (var n = 0u; n < PER; n += 4u) {
    let quarter = thread + n / 4u * WG;
    if (COLS <= TILE) { tile_fours(quarter * 4u, kept[n], kept[n + 1u], kept[n + 2u], kept[n + 3u]); }
  }
  return 0u;
}

fn vector_four(at: u32, left: u32) -> vec4f {
  let i = at / 4u;
  if (norms() == 0u) { return arena[i]; }
  var four = arena[x_first + i];
  if (norms_have(ADD)) { four = (arena[added_first + i] + four * norm_weight[i] * factor) * p.sum_scale; }
  if (norms_have(NEXT)) { four *= next_factor * next_weight[i]; }
  return four;
}

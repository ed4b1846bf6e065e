// The vector of a product, COLS numbers in whole fours, from what lies before a residual and a norm:
//   sum = ADD: (added + x / sqrt(mean(x^2) + eps) * weight * norm_scale) * sum_scale, else x
//   vector = NEXT: sum / sqrt(mean(sum^2) + next_eps) * next_weight * next_scale, else sum
// Every workgroup finds both factors for itself, and the numbers when they are asked for; the first one of a token
// writes the sum, and with KEEP the vector, for those who read them later.
@group(0) @binding(NORMS) var<storage, read> norm_weight: array<vec4f>;
@group(0) @binding(NORMS + 1u) var<storage, read> next_weight: array<vec4f>;

const COUNT: u32 = COLS / 4u;
const PER: u32 = (COUNT + WG - 1u) / WG;  // fours of a thread
var<private> x_first: u32;
var<private> added_first: u32;
var<private> factor: f32;
var<private> next_factor: f32;

// Gives what row_sums() takes for the vector's place.
fn begin_vector(group: vec3u, thread: u32) -> u32 {
  x_first = (p.x + group.y * p.x_stride) / 4u;
  added_first = (p.added + group.y * p.added_stride) / 4u;
  // All that the sums need is asked for at once, lest each wait for memory anew.
  var kept: array<vec4f, PER>;
  var added: array<vec4f, PER>;
  var squares = 0.0;
  for (var n = 0u; n < PER; n++) {
    let i = thread + n * WG;
    if (i < COUNT) {
      let x = arena[x_first + i];
      squares += dot(x, x);
      kept[n] = x;
      if (ADD) {
        kept[n] = x * norm_weight[i];
        added[n] = arena[added_first + i];
      }
    }
  }
  if (ADD) {
    factor = p.norm_scale / sqrt(reduce_sum(squares, thread) / f32(COLS) + p.eps);
    squares = 0.0;
    for (var n = 0u; n < PER; n++) {
      kept[n] = (added[n] + kept[n] * factor) * p.sum_scale;
      squares += dot(kept[n], kept[n]);
    }
  }
  if (NEXT) { next_factor = p.next_scale / sqrt(reduce_sum(squares, thread) / f32(COLS) + p.next_eps); }
  if (group.x == 0u && group.z == 0u) {
    for (var n = 0u; n < PER; n++) {
      let i = thread + n * WG;
      if (i < COUNT) {
        if (ADD) { arena[(p.sum + group.y * p.sum_stride) / 4u + i] = kept[n]; }
        if (KEEP) { arena[(p.next + group.y * p.next_stride) / 4u + i] = kept[n] * next_factor * next_weight[i]; }
      }
    }
  }
  return 0u;
}

fn vector_four(at: u32, left: u32) -> vec4f {
  let i = at / 4u;
  var four = arena[x_first + i];
  if (ADD) { four = (arena[added_first + i] + four * norm_weight[i] * factor) * p.sum_scale; }
  if (NEXT) { four *= next_factor * next_weight[i]; }
  return four;
}

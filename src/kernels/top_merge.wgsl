// the k best of a row from those of its slices: their columns, their values, and ln of the sum of e^x over the row
// one workgroup per row; grid (rows)
struct Params {
  x: u32, x_stride: u32, partial: u32, out: u32, out_stride: u32, slices: u32, k: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;

const MOST: u32 = 256u;  // slices
var<workgroup> head: array<vec2u, MOST>;  // the best of each slice that was not taken yet: key, column
var<workgroup> taken: array<u32, MOST>;

// Entry n of a slice as key and column.
fn entry(x: u32, list: u32, n: u32) -> vec2u {
  if (n >= p.k) { return vec2u(NOTHING, 0xffffffffu); }
  let column = arena[list + n];
  if (column < 0.0) { return vec2u(NOTHING, 0xffffffffu); }
  return vec2u(key_of(arena[x + u32(column)]), u32(column));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let x = p.x + group.x * p.x_stride;
  let out = p.out + group.x * p.out_stride;
  let row = p.k + 2u;
  let lists = p.partial + group.x * p.slices * row;
  // A thread's slices are its own: nobody else reads or writes their heads.
  var mine = vec2u(NOTHING, 0xffffffffu);
  var from_slice = 0u;
  for (var s = thread; s < p.slices; s += WG) {
    head[s] = entry(x, lists + s * row, 0u);
    taken[s] = 0u;
    if (is_before(head[s], mine)) { mine = head[s]; from_slice = s; }
  }
  var first = vec2u(0u);
  for (var n = 0u; n < p.k; n++) {
    let best = reduce_best(mine, thread);
    if (n == 0u) { first = best; }
    if (thread == 0u) {
      arena[out + n] = f32(best.y);
      arena[out + p.k + n] = arena[x + best.y];
    }
    if (all(best == mine)) {
      taken[from_slice]++;
      head[from_slice] = entry(x, lists + from_slice * row, taken[from_slice]);
      mine = vec2u(NOTHING, 0xffffffffu);
      for (var s = thread; s < p.slices; s += WG) {
        if (is_before(head[s], mine)) { mine = head[s]; from_slice = s; }
      }
    }
  }

  // Where the largest is infinite or not a number, it is the logarithm of the sum itself.
  let top = arena[x + first.y];
  let ordinary = first.x > KEY_OF_MINUS_INFINITY && first.x < KEY_OF_INFINITY;
  var sum = 0.0;
  if (ordinary) {
    for (var s = thread; s < p.slices; s += WG) {
      let total = arena[lists + s * row + p.k + 1u];
      if (total > 0.0) { sum += total * exp(arena[lists + s * row + p.k] - top); }
    }
  }
  let total = reduce_sum(sum, thread);
  if (thread == 0u) {
    if (ordinary) {
      arena[out + 2u * p.k] = top + log(total);
    } else {
      arena[out + 2u * p.k] = top;
    }
  }
}

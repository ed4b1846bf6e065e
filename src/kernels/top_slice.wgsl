// the k best of one slice of a row, and the sum of e^(x - largest) over it
// one workgroup per slice and row; grid (slices, rows)
struct Params {
  x: u32, x_stride: u32, partial: u32, cols: u32, slice: u32, k: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;

// Of the elements in [begin, end) that belong to this thread, the first behind `last`.
fn next(x: u32, begin: u32, end: u32, last: vec2u) -> vec2u {
  var best = vec2u(NOTHING, 0xffffffffu);
  for (var i = begin; i < end; i += WG) {
    let own = vec2u(key_of(arena[x + i]), i);
    if (is_before(last, own) && is_before(own, best)) { best = own; }
  }
  return best;
}

// Row (row * slices + slice) of partial has k + 2 numbers: the best, as columns (-1 where there are no more), the
// largest value and the sum.
@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let x = p.x + group.y * p.x_stride;
  let out = p.partial + (group.y * groups.x + group.x) * (p.k + 2u);
  let first = group.x * p.slice;
  let end = min(first + p.slice, p.cols);
  let begin = first + thread;

  var mine = next(x, begin, end, vec2u(BEFORE_ALL, 0u));
  var largest = vec2u(0u);
  for (var n = 0u; n < p.k; n++) {
    let best = reduce_best(mine, thread);
    if (n == 0u) { largest = best; }
    if (thread == 0u) { arena[out + n] = select(f32(best.y), -1.0, best.x == NOTHING); }
    if (best.x != NOTHING && all(best == mine)) { mine = next(x, begin, end, best); }
  }

  var sum = 0.0;
  if (largest.x > KEY_OF_MINUS_INFINITY && largest.x < KEY_OF_INFINITY) {
    let top = arena[x + largest.y];
    for (var i = begin; i < end; i += WG) {
      let value = arena[x + i];
      if (key_of(value) > KEY_OF_MINUS_INFINITY) { sum += exp(value - top); }
    }
  }
  let total = reduce_sum(sum, thread);
  if (thread == 0u) {
    arena[out + p.k] = arena[x + largest.y];
    arena[out + p.k + 1u] = total;
  }
}

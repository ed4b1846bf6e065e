// chooses a token from a row of top-k, and puts it where the next pass looks for its token
// one workgroup; grid (1)
struct Params {
  top: u32, draw: u32, ids: u32, positions: u32, out: u32, k: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;

const MOST: u32 = 128u;  // candidates
const SUPPRESSED: u32 = 6u;  // of draw: where the tokens that are never chosen begin
var<workgroup> likelihood: array<f32, MOST>;  // relative to the best; -1 where it is never chosen
var<workgroup> weight: array<f32, MOST>;  // the same at the draw's temperature

fn possible(i: u32) -> bool {
  let key = key_of(arena[p.top + p.k + i]);
  if (key == KEY_OF_MINUS_INFINITY || key == KEY_OF_INFINITY) { return false; }
  let count = u32(arena[p.draw + 5u]);
  for (var n = 0u; n < count; n++) {
    if (arena[p.draw + SUPPRESSED + n] == arena[p.top + i]) { return false; }
  }
  return true;
}

// From the candidates' weights, which are in order, best first at `first`.
fn choose(first: u32) -> u32 {
  let top_k = arena[p.draw + 1u];
  let top_p = arena[p.draw + 2u];
  let min_p = arena[p.draw + 3u];
  var rank = 0.0;
  var all = 0.0;
  for (var i = first; i < p.k && rank < top_k; i++) {
    if (likelihood[i] >= 0.0) { all += likelihood[i]; rank += 1.0; }
  }
  let enough = select(2.0 * all, top_p * all, top_p < 1.0);
  rank = 0.0;
  var end = first;
  var kept = 0.0;
  var total = 0.0;
  for (; end < p.k && rank < top_k && (rank == 0.0 || kept < enough); end++) {
    if (likelihood[end] < 0.0) { continue; }
    if (rank > 0.0 && likelihood[end] < min_p) { break; }
    kept += likelihood[end];
    total += weight[end];
    rank += 1.0;
  }
  let wanted = arena[p.draw + 4u] * total;
  var choice = first;
  var reached = weight[first];
  for (var i = first + 1u; i < end && reached < wanted; i++) {
    if (likelihood[i] < 0.0) { continue; }
    choice = i;
    reached += weight[i];
  }
  return choice;
}

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) thread: u32) {
  for (var i = thread; i < 2u * p.k + 1u; i += WG) { arena[p.out + i] = arena[p.top + i]; }
  var first = 0u;
  while (first < p.k && !possible(first)) { first++; }
  if (first == p.k) { first = 0u; }  // the host will say that there is nothing to choose from
  let temperature = arena[p.draw];
  let best = arena[p.top + p.k + first];
  for (var i = thread; i < p.k; i += WG) {
    let gap = arena[p.top + p.k + i] - best;
    likelihood[i] = select(-1.0, exp(gap), possible(i));
    weight[i] = exp(gap / max(temperature, 1e-6));
  }
  workgroupBarrier();
  if (thread != 0u) { return; }
  var choice = first;
  if (temperature > 0.0) { choice = choose(first); }
  let token = arena[p.top + choice];
  arena[p.out + 2u * p.k + 1u] = token;
  arena[p.ids] = token;
  arena[p.positions] += 1.0;
}

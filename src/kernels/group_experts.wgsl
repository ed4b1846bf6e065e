// the pairs t * used + a, ordered by their expert ids[t][a] and then by number, and cut into runs of one expert each
// one workgroup per expert; grid (experts)
struct Params {
  ids: u32, ids_stride: u32, order: u32, runs: u32, used: u32, pairs: u32, run: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;

var<workgroup> counts: array<vec2u, WG>;  // of each thread's pairs: of experts before this one, of this one

fn expert_of(pair: u32) -> u32 {
  return u32(arena[p.ids + pair / p.used * p.ids_stride + pair % p.used]);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let expert = group.x;
  let share = (p.pairs + WG - 1u) / WG;
  let begin = min(thread * share, p.pairs);
  let end = min(begin + share, p.pairs);
  var count = vec2u(0u);
  for (var i = begin; i < end; i++) {
    let other = expert_of(i);
    count += vec2u(u32(other < expert), u32(other == expert));
  }
  counts[thread] = count;
  workgroupBarrier();
  var start = 0u;
  var length = 0u;
  var place = 0u;
  for (var i = 0u; i < WG; i++) {
    start += counts[i].x;
    length += counts[i].y;
    if (i < thread) { place += counts[i].y; }
  }
  place += start;
  for (var i = begin; i < end; i++) {
    if (expert_of(i) == expert) {
      arena[p.order + place] = f32(i);
      place++;
    }
  }
  // Experts before this one have at most start / run + expert runs: from there on is room for its own, up to where the
  // next one's begin. So no expert needs to know how many runs the others have.
  let first = start / p.run + expert;
  let after = (start + length) / p.run + expert + 1u;
  for (var i = first + thread; i < after; i += WG) {
    let done = min((i - first) * p.run, length);
    arena[p.runs + i * 3u] = f32(expert);
    arena[p.runs + i * 3u + 1u] = f32(start + done);
    arena[p.runs + i * 3u + 2u] = f32(min(p.run, length - done));
  }
}

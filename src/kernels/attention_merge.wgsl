// joins the parts of attention: out = sum of parts * exp(largest - overall) / sum of weights likewise
// one workgroup per FOURS fours of a head and token; grid (fours of a head / FOURS, heads, tokens)
struct Params {
  partial: u32, out: u32, out_stride: u32, positions: u32, positions_stride: u32, last: u32, last_stride: u32,
  fours: u32, window: u32, parts: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<vec4f>;

// A thread has one four of every RUNS-th part, AHEAD parts at a time. They are asked for before it is known how many parts
// there are, because memory is slow to answer: what lies in the others is not looked at.
const FOURS: u32 = min(32u, WG);
const RUNS: u32 = WG / FOURS;
const AHEAD: u32 = 4u;
struct Some {
  stats: array<vec2f, AHEAD>,
  sums: array<vec4f, AHEAD>,
}
var<workgroup> run_sums: array<array<vec4f, FOURS>, RUNS>;
var<workgroup> run_stats: array<array<vec2f, FOURS>, RUNS>;  // largest score, weight

fn number(at: u32) -> f32 { return arena[at / 4u][at % 4u]; }

fn ask(first: u32, part: u32, column: u32) -> Some {
  var some: Some;
  for (var n = 0u; n < AHEAD; n++) {
    if (part + n * RUNS < p.parts) {
      let at = first + (part + n * RUNS) * (p.fours + 1u);
      some.stats[n] = arena[at + p.fours].xy;
      some.sums[n] = arena[at + column];
    }
  }
  return some;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let t = group.z;
  let position = number(p.positions + t * p.positions_stride);
  let last = number(p.last + t * p.last_stride);
  let first = p.partial / 4u + (t * groups.y + group.y) * p.parts * (p.fours + 1u);
  let four = group.x * FOURS + thread % FOURS;
  let column = min(four, p.fours - 1u);
  var next = ask(first, thread / FOURS, column);
  let seen = seen_at(position, last);
  let used = (seen.count + seen.share - 1u) / seen.share;
  var largest = -3.0e38;
  var total = 0.0;
  var sum = vec4f();
  for (var i = thread / FOURS; i < used; i += RUNS * AHEAD) {
    var some = next;
    next = ask(first, i + RUNS * AHEAD, column);
    for (var n = 0u; n < AHEAD; n++) {
      if (i + n * RUNS >= used) {
        some.stats[n] = vec2f(-3.0e38, 0.0);
        some.sums[n] = vec4f();
      }
    }
    var most = largest;
    for (var n = 0u; n < AHEAD; n++) { most = max(most, some.stats[n].x); }
    let rescale = exp(largest - most);
    largest = most;
    total *= rescale;
    sum *= rescale;
    for (var n = 0u; n < AHEAD; n++) {
      let weight = exp(some.stats[n].x - most);
      total += weight * some.stats[n].y;
      sum += weight * some.sums[n];
    }
  }
  run_sums[thread / FOURS][thread % FOURS] = sum;
  run_stats[thread / FOURS][thread % FOURS] = vec2f(largest, total);
  workgroupBarrier();
  if (thread >= FOURS || four >= p.fours) { return; }
  for (var r = 1u; r < RUNS; r++) { largest = max(largest, run_stats[r][thread].x); }
  sum = vec4f();
  total = 0.0;
  for (var r = 0u; r < RUNS; r++) {
    let stats = run_stats[r][thread];
    let weight = exp(stats.x - largest);
    total += weight * stats.y;
    sum += weight * run_sums[r][thread];
  }
  arena[(p.out + t * p.out_stride) / 4u + group.y * p.fours + four] = sum / total;
}

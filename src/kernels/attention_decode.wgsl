// attention of few tokens: QUERIES heads that have the same keys and values read them once
// one workgroup per QUERIES heads, token and part of the keys; grid (heads / QUERIES, tokens, parts)
struct Params {
  q: u32, q_stride: u32, out: u32, out_stride: u32,
  positions: u32, positions_stride: u32, last: u32, last_stride: u32,
  heads_per_kv: u32, row: u32, slots: u32, window: u32, parts: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<vec4f>;
@group(0) @binding(2) var<storage, read> keys: array<KvWord>;
@group(0) @binding(3) var<storage, read> values: array<KvWord>;

const STAGED: u32 = (QUERIES * FOURS + WG - 1u) / WG;
var<workgroup> here: vec2f;

// All keys are in the ring, and the queries are as they come.
const FRESH: bool = false;
fn fresh_key(four: u32) -> vec4f { return vec4f(); }
fn fresh_value(four: u32) -> vec4f { return vec4f(); }
fn query_scale(query: u32) -> f32 { return 1.0; }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) thread: u32) {
  let head = group.x * QUERIES;
  let t = group.y;
  if (thread == 0u) {
    here = vec2f(number(p.positions + t * p.positions_stride), number(p.last + t * p.last_stride));
  }
  let q = (p.q + t * p.q_stride) / 4u + head * FOURS;
  var staged: array<vec4f, STAGED>;
  for (var i = 0u; i < STAGED; i++) { staged[i] = arena[q + min(thread + i * WG, QUERIES * FOURS - 1u)]; }
  let bounds = workgroupUniformLoad(&here);
  let seen = seen_at(bounds.x, bounds.y);
  let begin = group.z * seen.share;
  if (begin >= seen.count) { return; }
  let count = min(seen.share, seen.count - begin);
  let part = Part(count, count, (seen.first + begin) % p.slots, head / p.heads_per_kv * FOURS);
  let some_keys = ask_keys(part, 0u, thread);
  let some_values = ask_values(part, 0u, thread);
  for (var i = 0u; i < STAGED; i++) {
    if (thread + i * WG < QUERIES * FOURS) { queries[thread / FOURS + i * SHARES][thread % FOURS] = staged[i]; }
  }
  workgroupBarrier();

  var out = (p.out + t * p.out_stride) / 4u + head * FOURS;
  var pitch = FOURS;
  if (p.parts > 1u) {
    out = p.out / 4u + ((t * groups.x * QUERIES + head) * p.parts + group.z) * (FOURS + 1u);
    pitch = p.parts * (FOURS + 1u);
  }
  attend(part, out, pitch, thread, some_keys, some_values);
}

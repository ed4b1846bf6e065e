// reads all of `data` once: how fast the device can read at best
// one thread per sixteen bytes, again and again over the whole; grid (workgroups)
struct Params {
  count: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@group(0) @binding(2) var<storage, read> data: array<vec4u>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) at: vec3u, @builtin(num_workgroups) groups: vec3u) {
  var sum = vec4u(0u);
  for (var i = at.x; i < p.count; i += groups.x * 256u) { sum += data[i]; }
  // The data is zero, so this never happens; but a compiler cannot know, and must read.
  if (any(sum != vec4u(0u))) { out[0] = sum.x + sum.y + sum.z + sum.w; }
}

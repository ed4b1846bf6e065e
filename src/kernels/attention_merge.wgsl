// joins the parts of attention: out = sum of parts * exp(largest - overall) / sum of weights likewise
// one thread per element of a head; grid (elements, heads, tokens)
struct Params {
  partial: u32, out: u32, out_stride: u32, head_size: u32, parts: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) at: vec3u, @builtin(num_workgroups) groups: vec3u) {
  if (at.x >= p.head_size) { return; }
  let row = p.head_size + 2u;
  let first = p.partial + (at.z * groups.y + at.y) * p.parts * row;
  var largest = -3.0e38;
  for (var i = 0u; i < p.parts; i++) { largest = max(largest, arena[first + i * row + p.head_size]); }
  var sum = 0.0;
  var total = 0.0;
  for (var i = 0u; i < p.parts; i++) {
    let weight = exp(arena[first + i * row + p.head_size] - largest);
    sum += weight * arena[first + i * row + at.x];
    total += weight * arena[first + i * row + p.head_size + 1u];
  }
  arena[p.out + at.z * p.out_stride + at.y * p.head_size + at.x] = sum / total;
}

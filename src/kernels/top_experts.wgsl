// the `used` largest of softmax(logits), ties to the lower index; weights renormalised to sum to one
// one workgroup per row; grid (rows)
struct Params {
  logits: u32, logits_stride: u32, ids: u32, ids_stride: u32, weights: u32, weights_stride: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<Value>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  choose_experts(group.x, thread);
  if (thread == 0u) { keep_choice(group.x); }
}

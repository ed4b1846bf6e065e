// the `used` largest of softmax(logits), ties to the lower index; weights renormalised to sum to one
// one workgroup per row; grid (rows)
struct Params {
  logits: u32, logits_stride: u32, ids: u32, ids_stride: u32, weights: u32, weights_stride: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;

// EXPERTS and USED come before this text.
var<workgroup> keys: array<u32, WG>;

// Integers in the order of the numbers. Those that are not numbers are last; both zeros are one.
fn key_of(logit: f32) -> u32 {
  var bits = bitcast<u32>(logit);
  if (bits == 0x80000000u) { bits = 0u; }
  if ((bits & 0x7fffffffu) > 0x7f800000u) { return 0u; }
  return select(bits ^ 0x80000000u, ~bits, bits > 0x80000000u);
}

// An expert's place is the number of those that come before it: all are compared with all, at once.
@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let logits = p.logits + group.x * p.logits_stride;
  let ids = p.ids + group.x * p.ids_stride;
  let weights = p.weights + group.x * p.weights_stride;
  for (var base = 0u; base < EXPERTS; base += WG) {
    let own = base + thread;
    let logit = arena[logits + min(own, EXPERTS - 1u)];
    let key = key_of(logit);
    var place = 0u;
    for (var first = 0u; first < EXPERTS; first += WG) {
      workgroupBarrier();
      keys[thread] = 0u;  // beyond the last one comes nobody
      if (first + thread < EXPERTS) { keys[thread] = key_of(arena[logits + first + thread]); }
      workgroupBarrier();
      for (var i = 0u; i < WG; i++) { place += u32(keys[i] > key || (keys[i] == key && first + i < own)); }
    }
    if (own < EXPERTS && place < USED) {
      arena[ids + place] = f32(own);
      arena[weights + place] = logit;
    }
  }
  storageBarrier();
  // The softmax over all divided by the sum over the chosen is the softmax over the chosen.
  let largest = arena[weights];
  var total = 0.0;
  for (var i = 0u; i < USED; i++) { total += exp(arena[weights + i] - largest); }
  storageBarrier();
  for (var i = thread; i < USED; i += WG) { arena[weights + i] = exp(arena[weights + i] - largest) / total; }
}

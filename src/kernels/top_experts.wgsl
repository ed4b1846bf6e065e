// the `used` largest of softmax(logits), ties to the lower index; weights renormalised to sum to one
// one workgroup per row; grid (rows)
struct Params {
  logits: u32, logits_stride: u32, ids: u32, ids_stride: u32, weights: u32, weights_stride: u32,
  experts: u32, used: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;

var<workgroup> best_logit: array<f32, WG>;
var<workgroup> best_id: array<u32, WG>;

// The best below (logit, id) in the order of descending logit and ascending id.
fn next_best(logits: u32, thread: u32, logit: f32, id: i32) {
  best_logit[thread] = -3.0e38;
  best_id[thread] = 0xFFFFFFFFu;
  for (var e = thread; e < p.experts; e += WG) {
    let value = arena[logits + e];
    let later = value < logit || (value == logit && i32(e) > id);
    if (later && (value > best_logit[thread] || best_id[thread] == 0xFFFFFFFFu)) {
      best_logit[thread] = value;
      best_id[thread] = e;
    }
  }
  workgroupBarrier();
  for (var half = WG / 2u; half > 0u; half /= 2u) {
    if (thread < half) {
      let other = thread + half;
      let wins = best_id[other] != 0xFFFFFFFFu &&
                 (best_id[thread] == 0xFFFFFFFFu || best_logit[other] > best_logit[thread] ||
                  (best_logit[other] == best_logit[thread] && best_id[other] < best_id[thread]));
      if (wins) {
        best_logit[thread] = best_logit[other];
        best_id[thread] = best_id[other];
      }
    }
    workgroupBarrier();
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let logits = p.logits + group.x * p.logits_stride;
  var logit = 3.0e38;
  var id = -1;
  var largest = 0.0;
  var total = 0.0;
  for (var i = 0u; i < p.used; i++) {
    next_best(logits, thread, logit, id);
    logit = best_logit[0];
    // Numbers that are not numbers rank nowhere; they must not become an index.
    id = i32(min(best_id[0], p.experts - 1u));
    workgroupBarrier();
    if (i == 0u) { largest = logit; }
    // The softmax over all divided by the sum over the chosen is the softmax over the chosen.
    let weight = exp(logit - largest);
    total += weight;
    if (thread == 0u) {
      arena[p.ids + group.x * p.ids_stride + i] = f32(id);
      arena[p.weights + group.x * p.weights_stride + i] = weight;
    }
  }
  if (thread == 0u) {
    for (var i = 0u; i < p.used; i++) { arena[p.weights + group.x * p.weights_stride + i] /= total; }
  }
}

// The USED largest of softmax over EXPERTS logits, ties to the lower index, and their shares, which sum to one. p has the places
// of logits, ids and weights in the arena.
var<workgroup> keys: array<u32, WG>;
var<workgroup> best_experts: array<u32, USED>;
var<workgroup> best_logits: array<f32, USED>;

// Integers in the order of the numbers. Those that are not numbers are last; both zeros are one.
fn key_of(logit: f32) -> u32 {
  var bits = bitcast<u32>(logit);
  if (bits == 0x80000000u) { bits = 0u; }
  if ((bits & 0x7fffffffu) > 0x7f800000u) { return 0u; }
  return select(bits ^ 0x80000000u, ~bits, bits > 0x80000000u);
}

// For the workgroup. An expert's place is the number of those that come before it: all are compared with all, at once.
fn choose_experts(t: u32, thread: u32) {
  let logits = p.logits + t * p.logits_stride;
  for (var base = 0u; base < EXPERTS; base += WG) {
    let own = base + thread;
    let logit = read1(logits + min(own, EXPERTS - 1u));
    let key = key_of(logit);
    var place = 0u;
    for (var first = 0u; first < EXPERTS; first += WG) {
      workgroupBarrier();
      keys[thread] = 0u;  // beyond the last one comes nobody
      if (first + thread < EXPERTS) { keys[thread] = key_of(read1(logits + first + thread)); }
      workgroupBarrier();
      for (var i = 0u; i < min(WG, EXPERTS); i++) { place += u32(keys[i] > key || (keys[i] == key && first + i < own)); }
    }
    if (own < EXPERTS && place < USED) {
      best_experts[place] = own;
      best_logits[place] = logit;
    }
  }
  workgroupBarrier();
}

fn chosen_expert(t: u32, place: u32, thread: u32) -> u32 {
  choose_experts(t, thread);
  return best_experts[place];
}

// For those who read it later; by one thread, as a write of one number may touch its neighbours.
fn keep_choice(t: u32) {
  // The softmax over all divided by the sum over the chosen is the softmax over the chosen.
  var total = 0.0;
  for (var i = 0u; i < USED; i++) { total += exp(best_logits[i] - best_logits[0]); }
  for (var i = 0u; i < USED; i++) {
    write1(p.ids + t * p.ids_stride + i, f32(best_experts[i]));
    write1(p.weights + t * p.weights_stride + i, exp(best_logits[i] - best_logits[0]) / total);
  }
}

// Sum or maximum over the WG threads of a workgroup; every thread gets the result. In two steps, because barriers cost more
// than additions: SPAN threads take a share each, then all threads take what these have.
const SPAN: u32 = min(16u, WG);
var<workgroup> reduce_slots: array<f32, WG>;

fn reduce_sum(value: f32, thread: u32) -> f32 {
  workgroupBarrier();
  reduce_slots[thread] = value;
  workgroupBarrier();
  if (thread < SPAN) {
    var sum = value;
    for (var i = thread + SPAN; i < WG; i += SPAN) { sum += reduce_slots[i]; }
    reduce_slots[thread] = sum;
  }
  workgroupBarrier();
  var sum = reduce_slots[0];
  for (var i = 1u; i < SPAN; i++) { sum += reduce_slots[i]; }
  return sum;
}

fn reduce_max(value: f32, thread: u32) -> f32 {
  workgroupBarrier();
  reduce_slots[thread] = value;
  workgroupBarrier();
  if (thread < SPAN) {
    var most = value;
    for (var i = thread + SPAN; i < WG; i += SPAN) { most = max(most, reduce_slots[i]); }
    reduce_slots[thread] = most;
  }
  workgroupBarrier();
  var most = reduce_slots[0];
  for (var i = 1u; i < SPAN; i++) { most = max(most, reduce_slots[i]); }
  return most;
}

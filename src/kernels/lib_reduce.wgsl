// Sum or maximum over the WG threads of a workgroup; every thread gets the result. In two steps, because barriers cost more
// than additions: SPAN threads take a share each, then all threads take what these have.
const SPAN: u32 = min(16u, WG);
var<workgroup> reduce_slots: array<array<f32, SPAN>, (WG + SPAN - 1u) / SPAN>;

fn reduce_sum(value: f32, thread: u32) -> f32 {
  workgroupBarrier();
  reduce_slots[thread / SPAN][thread % SPAN] = value;
  workgroupBarrier();
  if (thread < SPAN) {
    var sum = value;
    for (var i = 1u; i * SPAN + thread < WG; i++) { sum += reduce_slots[i][thread]; }
    reduce_slots[0][thread] = sum;
  }
  workgroupBarrier();
  var sum = reduce_slots[0][0];
  for (var i = 1u; i < SPAN; i++) { sum += reduce_slots[0][i]; }
  return sum;
}

fn reduce_max(value: f32, thread: u32) -> f32 {
  workgroupBarrier();
  reduce_slots[thread / SPAN][thread % SPAN] = value;
  workgroupBarrier();
  if (thread < SPAN) {
    var most = value;
    for (var i = 1u; i * SPAN + thread < WG; i++) { most = max(most, reduce_slots[i][thread]); }
    reduce_slots[0][thread] = most;
  }
  workgroupBarrier();
  var most = reduce_slots[0][0];
  for (var i = 1u; i < SPAN; i++) { most = max(most, reduce_slots[0][i]); }
  return most;
}

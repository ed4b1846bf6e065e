// Sum or maximum over the WG threads of a workgroup; every thread gets the result.
var<workgroup> reduce_slots: array<f32, WG>;

fn reduce_sum(value: f32, thread: u32) -> f32 {
  workgroupBarrier();
  reduce_slots[thread] = value;
  workgroupBarrier();
  for (var half = WG / 2u; half > 0u; half /= 2u) {
    if (thread < half) { reduce_slots[thread] += reduce_slots[thread + half]; }
    workgroupBarrier();
  }
  return reduce_slots[0];
}

fn reduce_max(value: f32, thread: u32) -> f32 {
  workgroupBarrier();
  reduce_slots[thread] = value;
  workgroupBarrier();
  for (var half = WG / 2u; half > 0u; half /= 2u) {
    if (thread < half) { reduce_slots[thread] = max(reduce_slots[thread], reduce_slots[thread + half]); }
    workgroupBarrier();
  }
  return reduce_slots[0];
}

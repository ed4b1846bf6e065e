// reduce_sum of lib_reduce.wgsl by subgroups, one barrier each. Before this text comes SUBGROUP_SIZE, that of all subgroups;
// neighbours there are neighbours in the workgroup.
const SUBGROUPS: u32 = (WG + SUBGROUP_SIZE - 1u) / SUBGROUP_SIZE;
var<workgroup> subgroup_sums: array<array<f32, SUBGROUPS>, 2>;
var<private> reduced: u32;  // times: who is late still reads the last one's

fn reduce_sum(value: f32, thread: u32) -> f32 {
  let at = reduced % 2u;
  reduced++;
  let part = subgroupAdd(value);
  if (thread % SUBGROUP_SIZE == 0u) { subgroup_sums[at][thread / SUBGROUP_SIZE] = part; }
  workgroupBarrier();
  var sum = subgroup_sums[at][0];
  for (var i = 1u; i < SUBGROUPS; i++) { sum += subgroup_sums[at][i]; }
  return sum;
}

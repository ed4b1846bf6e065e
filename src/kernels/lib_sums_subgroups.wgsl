// Four sums over the threads of a workgroup; every thread gets them. Before this text comes SUBGROUP_SIZE, that of all
// subgroups; neighbours there are neighbours in the workgroup.
const SUBGROUPS: u32 = (WG + SUBGROUP_SIZE - 1u) / SUBGROUP_SIZE;
var<workgroup> subgroup_sums: array<vec4f, SUBGROUPS>;

fn reduce_sums(own: vec4f, thread: u32) -> vec4f {
  let part = subgroupAdd(own);
  if (thread % SUBGROUP_SIZE == 0u) { subgroup_sums[thread / SUBGROUP_SIZE] = part; }
  workgroupBarrier();
  var sum = subgroup_sums[0];
  for (var i = 1u; i < SUBGROUPS; i++) { sum += subgroup_sums[i]; }
  return sum;
}

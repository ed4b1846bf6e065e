// Four sums over the threads of a workgroup; every thread gets them. In two steps, because barriers cost more than additions:
// SPAN threads take a share each, then all threads take what these have. The product's memory is not in use yet.
const SPAN: u32 = min(16u, WG);

fn reduce_sums(own: vec4f, thread: u32) -> vec4f {
  leave(thread, own);
  workgroupBarrier();
  if (thread < SPAN) {
    var sum = own;
    for (var i = thread + SPAN; i < WG; i += SPAN) { sum += left_by(i); }
    leave(thread, sum);
  }
  workgroupBarrier();
  var sum = left_by(0u);
  for (var i = 1u; i < SPAN; i++) { sum += left_by(i); }
  workgroupBarrier();
  return sum;
}

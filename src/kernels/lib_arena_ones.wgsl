// Up to four numbers of the arena, one at a time: `left` of them exist.
alias Value = f32;
fn read4(at: u32, left: u32) -> vec4f {
  var four = vec4f();
  for (var i = 0u; i < 4u; i++) {
    if (i < left) { four[i] = arena[at + i]; }
  }
  return four;
}
fn write4(at: u32, left: u32, four: vec4f) {
  for (var i = 0u; i < 4u; i++) {
    if (i < left) { arena[at + i] = four[i]; }
  }
}
fn read1(at: u32) -> f32 { return arena[at]; }
fn write1(at: u32, number: f32) { arena[at] = number; }

// The arena one number at a time.
alias Value = f32;
const WIDTH: u32 = 1u;
fn read1(at: u32) -> f32 { return arena[at]; }
fn square(v: Value) -> f32 { return v * v; }

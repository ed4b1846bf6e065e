// The arena one number at a time.
alias Value = f32;
const WIDTH: u32 = 1u;
fn square(v: Value) -> f32 { return v * v; }

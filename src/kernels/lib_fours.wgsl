// The arena four numbers at a time, where all rows begin at multiples of four.
alias Value = vec4f;
const WIDTH: u32 = 4u;
fn read1(at: u32) -> f32 { return arena[at / 4u][at % 4u]; }
fn square(v: Value) -> f32 { return dot(v, v); }

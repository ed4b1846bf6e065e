// Four numbers of the arena at once, where all rows begin at multiples of four and have whole fours.
alias Value = vec4f;
fn read4(at: u32, left: u32) -> vec4f { return arena[at / 4u]; }
fn write4(at: u32, left: u32, four: vec4f) { arena[at / 4u] = four; }
fn read1(at: u32) -> f32 { return arena[at / 4u][at % 4u]; }
fn write1(at: u32, number: f32) { arena[at / 4u][at % 4u] = number; }

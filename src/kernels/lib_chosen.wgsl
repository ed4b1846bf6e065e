// The experts of a token as lib_choose.wgsl found them before.
fn chosen_expert(t: u32, place: u32, thread: u32) -> u32 { return u32(read1(p.ids + t * p.ids_stride + place)); }
fn keep_choice(t: u32) {}

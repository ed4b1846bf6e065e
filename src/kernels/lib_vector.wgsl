// The vector of a product, as it lies in the arena.
fn vector_in_tile() -> bool { return false; }
fn begin_vector(group: vec3u, thread: u32) -> u32 { return p.x + group.y * p.x_stride; }
fn vector_four(at: u32, left: u32) -> vec4f { return read4(at, left); }

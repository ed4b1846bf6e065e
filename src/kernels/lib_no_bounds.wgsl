// What a product reads and writes, as it is.
fn bounded_x(v: f32) -> f32 { return v; }
fn bounded_out(v: f32) -> f32 { return v; }

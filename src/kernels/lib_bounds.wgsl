// What a product reads and writes, within the bounds of its parameters.
fn bounded(v: f32, low: f32, high: f32) -> f32 {
  // Clamping would make a number of what is none, and hide it.
  if ((bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u) { return v; }
  return clamp(v, low, high);
}
fn bounded_x(v: f32) -> f32 { return bounded(v, p.in_min, p.in_max); }
fn bounded_out(v: f32) -> f32 { return bounded(v, p.out_min, p.out_max); }

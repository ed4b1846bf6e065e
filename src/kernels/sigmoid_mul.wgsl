// out = x * sigmoid(gate)
// one thread per element; grid (columns, rows)
struct Params {
  x: u32, x_stride: u32, gate: u32, gate_stride: u32, out: u32, out_stride: u32,
  cols: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) at: vec3u) {
  if (at.x >= p.cols) { return; }
  let gate = arena[p.gate + at.y * p.gate_stride + at.x];
  // Beyond 80 the exponential nears the end of single precision, and nothing guarantees infinity after it.
  arena[p.out + at.y * p.out_stride + at.x] =
      arena[p.x + at.y * p.x_stride + at.x] / (1.0 + exp(min(-gate, 80.0)));
}

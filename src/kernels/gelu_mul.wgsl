// out = gelu(gate) * up, the tanh form of gelu
// one thread per element; grid (columns, rows)
struct Params {
  gate: u32, gate_stride: u32, up: u32, up_stride: u32, out: u32, out_stride: u32,
  cols: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) at: vec3u) {
  if (at.x >= p.cols) { return; }
  let gate = arena[p.gate + at.y * p.gate_stride + at.x];
  arena[p.out + at.y * p.out_stride + at.x] = gelu(gate) * arena[p.up + at.y * p.up_stride + at.x];
}

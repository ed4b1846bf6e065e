// rotates element i of head h against element i + D/2 by positions[t][h mod columns] * frequency[i]
// one thread per pair; grid (pairs of a row, rows)
struct Params {
  x: u32, x_stride: u32, out: u32, out_stride: u32,
  positions: u32, positions_stride: u32, columns: u32, half: u32, cols: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> turns: array<vec2u>;  // turns per position, 64-bit fraction: low, high

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) at: vec3u) {
  let t = at.y;
  let head = at.x / p.half * 2u * p.half;
  let i = at.x % p.half;
  if (head >= p.cols) { return; }
  let position = u32(arena[p.positions + t * p.positions_stride + at.x / p.half % p.columns]);
  let turn = turn_at(position, turns[i]);
  let x = p.x + t * p.x_stride + head + i;
  let a = arena[x];
  let b = arena[x + p.half];
  let out = p.out + t * p.out_stride + head + i;
  arena[out] = a * turn.x - b * turn.y;
  arena[out + p.half] = a * turn.y + b * turn.x;
}

// rotates element i of head h against element i + D/2 by positions[t][h mod columns] * frequency[i]
// one thread per pair; grid (pairs of a row, rows)
struct Params {
  x: u32, x_stride: u32, out: u32, out_stride: u32,
  positions: u32, positions_stride: u32, columns: u32, half: u32, cols: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> turns: array<vec2u>;  // turns per position, 64-bit fraction: low, high

// The high word of a * b.
fn multiply_high(a: u32, b: u32) -> u32 {
  let low = (a & 0xFFFFu) * (b & 0xFFFFu);
  let middle = (a >> 16u) * (b & 0xFFFFu) + (low >> 16u);
  let other = (a & 0xFFFFu) * (b >> 16u) + (middle & 0xFFFFu);
  return (a >> 16u) * (b >> 16u) + (middle >> 16u) + (other >> 16u);
}

// Cosine and sine of a turn's fraction (2^32 = once around). The angle is exact at every position, and the polynomials
// are good to single precision, which WGSL does not promise of its own functions.
fn cos_sin(fraction: u32) -> vec2f {
  let quadrant = (fraction + 0x20000000u) >> 30u;
  let x = f32(i32(fraction - (quadrant << 30u))) * 1.4629180792671596e-9;  // 2 pi / 2^32, within pi / 4
  let y = x * x;
  let s = x * (1.0 + y * (-0.16666667 + y * (8.3333310e-3 + y * (-1.9840874e-4 + y * 2.7525562e-6))));
  let c = 1.0 + y * (-0.5 + y * (4.1666642e-2 + y * (-1.3888397e-3 + y * 2.4609622e-5)));
  switch quadrant & 3u {
    case 0u: { return vec2f(c, s); }
    case 1u: { return vec2f(-s, c); }
    case 2u: { return vec2f(-c, -s); }
    default: { return vec2f(s, -c); }
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) at: vec3u) {
  let t = at.y;
  let head = at.x / p.half * 2u * p.half;
  let i = at.x % p.half;
  if (head >= p.cols) { return; }
  let position = u32(arena[p.positions + t * p.positions_stride + at.x / p.half % p.columns]);
  let fraction = position * turns[i].y + multiply_high(position, turns[i].x);
  let turn = cos_sin(fraction);
  let x = p.x + t * p.x_stride + head + i;
  let a = arena[x];
  let b = arena[x + p.half];
  let out = p.out + t * p.out_stride + head + i;
  arena[out] = a * turn.x - b * turn.y;
  arena[out + p.half] = a * turn.y + b * turn.x;
}

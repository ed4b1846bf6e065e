// rows of x as sums of two half floats, for subgroup matrices: a power of two brings the largest of a row near 2^13, then
// each number is cut to a half, and what that leaves, rounded, is another; x within bounds where there are some
// one workgroup per row; grid (rows)
struct Params {
  x: u32, x_stride: u32, cols: u32, pitch: u32,
  in_min: f32, in_max: f32, out_min: f32, out_max: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read_write> halves: array<u32>;   // of each 32 numbers the halves, then the others
@group(0) @binding(3) var<storage, read_write> factors: array<f32>;  // what to multiply a row's products with

fn x_at(row: u32, c: u32) -> f32 {
  if (c >= p.cols) { return 0.0; }
  return bounded_x(arena[p.x + row * p.x_stride + c]);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let row = group.x;
  var most = 0.0;
  for (var c = thread; c < p.cols; c += WG) { most = max(most, abs(x_at(row, c))); }
  // By the bits of the exponent, so that it is exact; zero and what is no number do no harm.
  let exponent = bitcast<u32>(reduce_max(most, thread)) >> 23u;
  let up = min(267u - exponent, 253u);
  let scale = bitcast<f32>(up << 23u);
  if (thread == 0u) { factors[row] = bitcast<f32>((254u - up) << 23u); }
  for (var c = thread * 4u; c < p.pitch; c += WG * 4u) {
    let v = scale * vec4f(x_at(row, c), x_at(row, c + 1u), x_at(row, c + 2u), x_at(row, c + 3u));
    // Cut to the bits of a half by their mask: what v - f32(f16(v)) leaves, a compiler may take for zero.
    let high = bitcast<vec4f>(bitcast<vec4u>(v) & vec4u(0xffffe000u));
    let low = v - high;
    let at = row * p.pitch + c / 32u * 32u + c % 32u / 2u;
    halves[at] = pack2x16float(high.xy);
    halves[at + 1u] = pack2x16float(high.zw);
    halves[at + 16u] = pack2x16float(low.xy);
    halves[at + 17u] = pack2x16float(low.zw);
  }
}

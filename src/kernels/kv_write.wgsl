// ring[positions[t] mod slots] = x[t]
// one thread per word of the ring; grid (words of a row, rows)
struct Params {
  x: u32, x_stride: u32, positions: u32, positions_stride: u32,
  cols: u32, slots: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read_write> ring: array<u32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) at: vec3u) {
  let words = p.cols / KV_PER_WORD;
  if (at.x >= words) { return; }
  let slot = u32(arena[p.positions + at.y * p.positions_stride]) % p.slots;
  let x = p.x + at.y * p.x_stride + at.x * KV_PER_WORD;
  ring[slot * words + at.x] = kv_pack(vec2f(arena[x], arena[x + KV_PER_WORD - 1u]));
}

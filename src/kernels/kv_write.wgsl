// ring[positions[t] mod slots] = x[t]
// one thread per four of a row; grid (fours of a row, rows)
struct Params {
  x: u32, x_stride: u32, positions: u32, positions_stride: u32,
  fours: u32, slots: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read_write> ring: array<KvWord>;

fn four_at(at: u32) -> vec4f { return vec4f(arena[at], arena[at + 1u], arena[at + 2u], arena[at + 3u]); }

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) at: vec3u) {
  if (at.x >= p.fours) { return; }
  let slot = u32(arena[p.positions + at.y * p.positions_stride]) % p.slots;
  let x = p.x + at.y * p.x_stride;
  var largest = 0.0;
  if (KV_SCALED) {
    for (var i = 0u; i < 32u; i++) { largest = max(largest, abs(arena[x + at.x / 8u * 32u + i])); }
  }
  let four = slot * p.fours + at.x;
  let value = kv_pack(four_at(x + at.x * 4u), largest);
  ring[kv_place(four)] = kv_word(value);
  if (KV_SCALED && at.x % 8u == 0u) { ring[kv_scale_place(four)] = kv_scale(value); }
}

// BF16: the upper half of an f32. A block is 16 of them, so r is 0.
const BLOCK: u32 = 16u;
const BLOCK_BYTES: u32 = 32u;

fn weights16(at: u32, r: u32) -> array<vec4f, 4> {
  let a = words16_at(at);
  let b = words16_at(at + 16u);
  let upper = vec4u(16u, 0u, 16u, 0u);
  let mask = vec4u(0xffff0000u);
  return array<vec4f, 4>(
      bitcast<vec4f>((a.xxyy << upper) & mask), bitcast<vec4f>((a.zzww << upper) & mask),
      bitcast<vec4f>((b.xxyy << upper) & mask), bitcast<vec4f>((b.zzww << upper) & mask));
}

// F16: the half float. A block is 16 of them, so r is 0.
const BLOCK: u32 = 16u;
const BLOCK_BYTES: u32 = 32u;

fn weights16(at: u32, r: u32) -> array<vec4f, 4> {
  let a = words16_at(at);
  let b = words16_at(at + 16u);
  return array<vec4f, 4>(
      vec4f(f16x2(a.x), f16x2(a.y)), vec4f(f16x2(a.z), f16x2(a.w)),
      vec4f(f16x2(b.x), f16x2(b.y)), vec4f(f16x2(b.z), f16x2(b.w)));
}

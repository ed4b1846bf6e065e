// Q4_0: d * (n - 8). d f16 @0, nibbles n @2: the low ones are run 0, the high ones run 1.
const BLOCK: u32 = 32u;
const BLOCK_BYTES: u32 = 18u;

fn weights16(at: u32, r: u32) -> array<vec4f, 4> {
  let d = f16_at(at);
  return affine16(fields16(bytes16_at(at + 2u), 4u * r, 15u), d, -8.0 * d);
}

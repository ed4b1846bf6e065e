// F32: the value itself. A block is 16 of them, so r is 0.
const BLOCK: u32 = 16u;
const BLOCK_BYTES: u32 = 64u;

fn weights16(at: u32, r: u32) -> array<vec4f, 4> {
  return array<vec4f, 4>(
      bitcast<vec4f>(words16_at(at)), bitcast<vec4f>(words16_at(at + 16u)),
      bitcast<vec4f>(words16_at(at + 32u)), bitcast<vec4f>(words16_at(at + 48u)));
}

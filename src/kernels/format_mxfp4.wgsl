// MXFP4: 2^(e - 128) * FP4[n]. Byte e @0, nibbles n @1 as in Q4_0; FP4 is 0 1 2 3 4 6 8 12 and the negatives.
const BLOCK: u32 = 32u;
const BLOCK_BYTES: u32 = 17u;

fn weights16(at: u32, r: u32) -> array<vec4f, 4> {
  let e = byte_at(at);
  let scale = bitcast<f32>(select((e - 1u) << 23u, 0x200000u << e, e < 2u));  // the two least are subnormal
  return float4_16(fields16(bytes16_at(at + 1u), 4u * r, 15u), scale);
}

// Numbers at byte addresses of the weights, whose i-th four bytes the kernel gives as word(i).
// A tensor begins at a multiple of four bytes. Its blocks do so only where their size is such a multiple; all
// sizes but MXFP4's are even.
// Nothing here reads past the word that holds the last byte asked for.
// A file format_<type>.wgsl gives BLOCK (elements of a block), BLOCK_BYTES and weights16(at, r): the 16 consecutive
// weights of run r (0 .. BLOCK / 16) of the block that begins at byte `at`.

fn byte_at(at: u32) -> u32 {
  return (word(at >> 2u) >> (8u * (at & 3u))) & 0xffu;
}

// `at` is even.
fn u16_at(at: u32) -> u32 {
  return (word(at >> 2u) >> (8u * (at & 2u))) & 0xffffu;
}

// Any `at`. Shifted in two steps: a shift by 32 would be one by 0.
fn u32_at(at: u32) -> u32 {
  let shift = 8u * (at & 3u);
  return (word(at >> 2u) >> shift) | ((word((at + 3u) >> 2u) << 1u) << (31u - shift));
}

// Four bytes from a multiple of four.
fn word_at(at: u32) -> u32 { return word(at >> 2u); }

// 16 bytes from a multiple of four.
fn words16_at(at: u32) -> vec4u {
  let i = at >> 2u;
  return vec4u(word(i), word(i + 1u), word(i + 2u), word(i + 3u));
}

// 16 bytes from any `at`.
fn bytes16_at(at: u32) -> vec4u {
  let here = words16_at(at);
  let next = vec4u(here.yzw, word((at + 15u) >> 2u));
  let shift = 8u * (at & 3u);
  return (here >> vec4u(shift)) | ((next << vec4u(1u)) << vec4u(31u - shift));
}

// `at` is even.
fn f16_at(at: u32) -> f32 {
  return f16x2(u16_at(at)).x;
}

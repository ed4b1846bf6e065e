// Sixteen weights of Q4_K times W_SCALE, asked for long before they are wanted: format_q4_k.wgsl in two parts.
struct Raw { head: vec4u, q: vec4u }
fn raw16(row: u32, c: u32) -> Raw {
  let at = row * (p.row_bytes / 16u) + c / 256u * 9u;
  return Raw(w[at], w[at + 1u + c % 256u / 64u * 2u + c % 32u / 16u]);
}

// The lower nibbles of bytes, see lib_small.wgsl.
fn nibbles4(word: u32) -> vec4f {
  let bits = vec4u(word, word, word, word >> 12u) & vec4u(0xfu, 0xf00u, 0xf0000u, 0xf000u);
  return fma(bitcast<vec4f>(bits | vec4u(bits_2_23)), PLACES, -0x1p23f * PLACES);
}

fn sixteen(raw: Raw, c: u32) -> array<vec4f, 4> {
  let j = c % 256u / 32u;
  let scale = W_SCALE * f16x2(raw.head.x) * scale_min_of(raw.head.yzw, j);
  let q = raw.q >> vec4u(4u * (j & 1u));
  let less = vec4f(-scale.y);
  return array<vec4f, 4>(fma(nibbles4(q.x), vec4f(scale.x), less), fma(nibbles4(q.y), vec4f(scale.x), less),
                         fma(nibbles4(q.z), vec4f(scale.x), less), fma(nibbles4(q.w), vec4f(scale.x), less));
}

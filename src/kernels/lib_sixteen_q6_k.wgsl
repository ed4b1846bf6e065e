// Sixteen weights of Q6_K in blocks of 224 bytes times W_SCALE, asked for long before they are wanted:
// format_q6_k_wide.wgsl in two parts.
struct Raw { low: vec4u, high: vec4u, scales: vec4u, d: vec4u }
fn raw16(row: u32, c: u32) -> Raw {
  let at = row * (p.row_bytes / 16u) + c / 256u * 14u;
  let h = c % 256u / 128u;
  let l = c % 32u / 16u;
  return Raw(w[at + 4u * h + c % 64u / 32u * 2u + l], w[at + 8u + 2u * h + l], w[at + 12u], w[at + 13u]);
}

fn sixteen(raw: Raw, c: u32) -> array<vec4f, 4> {
  let r = c % 256u / 16u;
  let g = (r >> 1u) & 3u;
  let scale = W_SCALE * f16x2(raw.d.x).x * f32(i8x4(raw.scales[r >> 2u] >> (8u * (r & 3u))).x);
  let q = fields16(raw.low, 4u * (g >> 1u), 15u) | (fields16(raw.high, 2u * g, 3u) << vec4u(4u));
  return array<vec4f, 4>(scale * small4(q.x, 32.0), scale * small4(q.y, 32.0),
                         scale * small4(q.z, 32.0), scale * small4(q.w, 32.0));
}

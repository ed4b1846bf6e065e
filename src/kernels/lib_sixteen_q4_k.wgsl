// Sixteen weights of Q4_K, asked for long before they are wanted: format_q4_k.wgsl in two parts.
struct Raw { head: vec4u, q: vec4u }
fn raw16(row: u32, c: u32) -> Raw {
  let at = row * (p.row_bytes / 16u) + c / 256u * 9u;
  return Raw(w[at], w[at + 1u + c % 256u / 64u * 2u + c % 32u / 16u]);
}

fn sixteen(raw: Raw, c: u32) -> array<vec4f, 4> {
  let j = c % 256u / 32u;
  let scale = f16x2(raw.head.x) * scale_min_of(raw.head.yzw, j);
  let q = fields16(raw.q, 4u * (j & 1u), 15u);
  let less = vec4f(-scale.y);
  return array<vec4f, 4>(fma(small4(q.x, 0.0), vec4f(scale.x), less), fma(small4(q.y, 0.0), vec4f(scale.x), less),
                         fma(small4(q.z, 0.0), vec4f(scale.x), less), fma(small4(q.w, 0.0), vec4f(scale.x), less));
}

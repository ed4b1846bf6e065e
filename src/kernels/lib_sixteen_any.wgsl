// Sixteen weights of any format times W_SCALE, asked for when they are wanted.
struct Raw { at: u32, run: u32 }
fn raw16(row: u32, c: u32) -> Raw { return Raw(row * p.row_bytes + c / BLOCK * BLOCK_BYTES, c % BLOCK / 16u); }
fn sixteen(raw: Raw, c: u32) -> array<vec4f, 4> {
  let u = weights16(raw.at, raw.run);
  return array<vec4f, 4>(W_SCALE * u[0], W_SCALE * u[1], W_SCALE * u[2], W_SCALE * u[3]);
}
fn unit_begin(cols: u32) {}

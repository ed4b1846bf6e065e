// A unit of 16 neighbours, in any format.
const UNIT: u32 = 16u;
alias UnitSums = f32;
fn unit_begin(cols: u32) {}
fn unit_place(n: u32) -> vec2u { return vec2u(n / 4u, n % 4u); }
fn unit_sums(x: ptr<function, array<vec4f, 4>>) -> UnitSums { return 0.0; }

alias UnitWords = array<vec4f, 4>;
fn unit_words(row: u32, u: u32, part: u32) -> UnitWords {
  return weights16(row + u * 16u / BLOCK * BLOCK_BYTES, u * 16u % BLOCK / 16u);
}

fn unit_dot(weights: UnitWords, part: u32, x: ptr<function, array<vec4f, 4>>, sums: UnitSums) -> f32 {
  return dot(weights[0], (*x)[0]) + dot(weights[1], (*x)[1]) + dot(weights[2], (*x)[2]) + dot(weights[3], (*x)[3]);
}

// lib_matrix without subgroup matrices and half precision: of each 16 x 16 sums, 32 threads keep eight rows of one token.
// Slow; so that what surrounds the matrices can be tested anywhere.
alias Sums = array<f32, 8>;
alias Left = vec2u;  // a block, and which word of its rows is the first
alias Right = vec2u;
fn left_0(block: u32) -> Left { return vec2u(block, 0u); }
fn left_1(block: u32) -> Left { return vec2u(block, 2u); }
fn right_0(block: u32) -> Right { return vec2u(block, 0u); }
fn right_1(block: u32) -> Right { return vec2u(block, 2u); }

fn of_eight(word: vec4u) -> array<vec4f, 2> {
  return array<vec4f, 2>(vec4f(unpack2x16float(word.x), unpack2x16float(word.y)),
                         vec4f(unpack2x16float(word.z), unpack2x16float(word.w)));
}

fn subgroupMatrixMultiplyAccumulate(w: Left, x: Right, sums: Sums) -> Sums {
  var more = sums;
  for (var k = 0u; k < 2u; k++) {
    let b = of_eight(x_tile[x.x][lane % 16u * PITCH + x.y + k]);
    for (var i = 0u; i < 8u; i++) {
      let a = of_eight(w_tile[w.x][(lane / 16u * 8u + i) * PITCH + w.y + k]);
      more[i] += dot(a[0], b[0]) + dot(a[1], b[1]);
    }
  }
  return more;
}

fn store_sums(block: u32, sums: Sums) {
  for (var i = 0u; i < 2u; i++) {
    OUT_TILE[block][lane % 16u * 4u + lane / 16u * 2u + i] =
        bitcast<vec4u>(vec4f(sums[i * 4u], sums[i * 4u + 1u], sums[i * 4u + 2u], sums[i * 4u + 3u]));
  }
}

@compute @workgroup_size(TILE_THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  multiply_tile(group, thread, thread / 32u);
}

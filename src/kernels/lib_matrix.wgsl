// 16 x 16 matrices that the threads of a subgroup hold together; halves are multiplied, sums have single precision.
alias Four = vec4h;
alias HalfWord = f16;
alias Left = subgroup_matrix_left<f16, 16, 16>;
alias Right = subgroup_matrix_right<f16, 16, 16>;
alias Sums = subgroup_matrix_result<f32, 16, 16>;

fn to_four(v: vec4f) -> Four { return Four(v); }

// 64 rows of weights, from fours of w_tile; 16 rows of x, from halves.
struct Lefts { a: Left, b: Left, c: Left, d: Left }
fn load_left(at: u32) -> Left { return subgroupMatrixLoad<Left, row_major>(&w_tile, at, W_PITCH / 4u); }
fn load_lefts(at: u32) -> Lefts {
  return Lefts(load_left(at), load_left(at + 4u * W_PITCH), load_left(at + 8u * W_PITCH), load_left(at + 12u * W_PITCH));
}
fn load_right(at: u32, stride: u32) -> Right { return subgroupMatrixLoad<Right, col_major>(&halves, at, stride); }

// Written out, because an array that is indexed at run time may be put in slow memory.
fn multiply_patch(sums: ptr<function, array<Sums, 8>>, w: Lefts, x: Right, y: Right) {
  (*sums)[0] = subgroupMatrixMultiplyAccumulate(w.a, x, (*sums)[0]);
  (*sums)[1] = subgroupMatrixMultiplyAccumulate(w.b, x, (*sums)[1]);
  (*sums)[2] = subgroupMatrixMultiplyAccumulate(w.c, x, (*sums)[2]);
  (*sums)[3] = subgroupMatrixMultiplyAccumulate(w.d, x, (*sums)[3]);
  (*sums)[4] = subgroupMatrixMultiplyAccumulate(w.a, y, (*sums)[4]);
  (*sums)[5] = subgroupMatrixMultiplyAccumulate(w.b, y, (*sums)[5]);
  (*sums)[6] = subgroupMatrixMultiplyAccumulate(w.c, y, (*sums)[6]);
  (*sums)[7] = subgroupMatrixMultiplyAccumulate(w.d, y, (*sums)[7]);
}

// By tokens: 16 rows of the first, 16 of the next.
fn store_sums(at: u32, sums: Sums) { subgroupMatrixStore<col_major>(&patches, at, sums, 16u); }
fn store_patches(sums: ptr<function, array<Sums, 8>>, subgroup: u32, row: u32, token: u32) {
  store_patch((*sums)[0], subgroup, row, token);
  store_patch((*sums)[1], subgroup, row + 16u, token);
  store_patch((*sums)[2], subgroup, row + 32u, token);
  store_patch((*sums)[3], subgroup, row + 48u, token);
  store_patch((*sums)[4], subgroup, row, token + 16u);
  store_patch((*sums)[5], subgroup, row + 16u, token + 16u);
  store_patch((*sums)[6], subgroup, row + 32u, token + 16u);
  store_patch((*sums)[7], subgroup, row + 48u, token + 16u);
}

@compute @workgroup_size(TILE_THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32,
        @builtin(subgroup_id) subgroup: u32) {
  multiply_tile(group, thread, subgroup);
}

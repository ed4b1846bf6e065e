// 16 x 16 matrices that the threads of a subgroup hold together; halves are multiplied, sums have single precision.
// Loads and stores say at compile time where in an array, and how far from row to row: where Dawn cannot see that they stay
// within, it makes both depend on a comparison, and the GPU has to compute every address. And all is written out, because
// sums that are indexed at run time are put in slow memory.
alias Left = subgroup_matrix_left<f16, 16, 16>;
alias Right = subgroup_matrix_right<f16, 16, 16>;
alias Sums = subgroup_matrix_result<f32, 16, 16>;
struct Lefts { a: Left, b: Left, c: Left, d: Left }
struct Rights { a: Right, b: Right }

// Of the 32 columns of a step the first or the last 16; 64 rows of weights, 32 of x, from a block on.
fn first_left(block: u32) -> Left { return subgroupMatrixLoad<Left, row_major>(&w_tile[block], 0u, PITCH); }
fn last_left(block: u32) -> Left { return subgroupMatrixLoad<Left, row_major>(&w_tile[block], 2u, PITCH); }
fn first_right(block: u32) -> Right { return subgroupMatrixLoad<Right, col_major>(&x_tile[block], 0u, PITCH); }
fn last_right(block: u32) -> Right { return subgroupMatrixLoad<Right, col_major>(&x_tile[block], 2u, PITCH); }
fn first_lefts(block: u32) -> Lefts {
  return Lefts(first_left(block), first_left(block + 1u), first_left(block + 2u), first_left(block + 3u));
}
fn last_lefts(block: u32) -> Lefts {
  return Lefts(last_left(block), last_left(block + 1u), last_left(block + 2u), last_left(block + 3u));
}
fn first_rights(block: u32) -> Rights { return Rights(first_right(block), first_right(block + 1u)); }
fn last_rights(block: u32) -> Rights { return Rights(last_right(block), last_right(block + 1u)); }

fn multiply(sums: ptr<function, array<Sums, 8>>, w: Lefts, x: Rights) {
  (*sums)[0] = subgroupMatrixMultiplyAccumulate(w.a, x.a, (*sums)[0]);
  (*sums)[1] = subgroupMatrixMultiplyAccumulate(w.b, x.a, (*sums)[1]);
  (*sums)[2] = subgroupMatrixMultiplyAccumulate(w.c, x.a, (*sums)[2]);
  (*sums)[3] = subgroupMatrixMultiplyAccumulate(w.d, x.a, (*sums)[3]);
  (*sums)[4] = subgroupMatrixMultiplyAccumulate(w.a, x.b, (*sums)[4]);
  (*sums)[5] = subgroupMatrixMultiplyAccumulate(w.b, x.b, (*sums)[5]);
  (*sums)[6] = subgroupMatrixMultiplyAccumulate(w.c, x.b, (*sums)[6]);
  (*sums)[7] = subgroupMatrixMultiplyAccumulate(w.d, x.b, (*sums)[7]);
}

// By tokens: 16 rows of the first, 16 of the next.
fn store_sums(block: u32, sums: Sums) { subgroupMatrixStore<col_major>(&x_tile[block], 0u, sums, 4u); }

@compute @workgroup_size(TILE_THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32,
        @builtin(subgroup_id) subgroup: u32) {
  multiply_tile(group, thread, subgroup);
}

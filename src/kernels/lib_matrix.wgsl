// 16 x 16 matrices that the threads of a subgroup hold together; halves are multiplied, sums have single precision.
// Loads and stores say at compile time where in an array, and how far from row to row: where Dawn cannot see that they stay
// within, it makes both depend on a comparison, and the GPU has to compute every address.
alias Left = subgroup_matrix_left<f16, 16, 16>;
alias Right = subgroup_matrix_right<f16, 16, 16>;
alias Sums = subgroup_matrix_result<f32, 16, 16>;

// Of the columns of a step the first 16 or the second, where there are some.
const SECOND: u32 = select(0u, 2u, TILE_STEP > 16u);
fn left_0(block: u32) -> Left { return subgroupMatrixLoad<Left, row_major>(&w_tile[block], 0u, PITCH); }
fn left_1(block: u32) -> Left { return subgroupMatrixLoad<Left, row_major>(&w_tile[block], SECOND, PITCH); }
fn right_0(block: u32) -> Right { return subgroupMatrixLoad<Right, col_major>(&x_tile[block], 0u, PITCH); }
fn right_1(block: u32) -> Right { return subgroupMatrixLoad<Right, col_major>(&x_tile[block], SECOND, PITCH); }

// By tokens: 16 rows of the first, 16 of the next.
fn store_sums(block: u32, sums: Sums) { subgroupMatrixStore<col_major>(&OUT_TILE[block], 0u, sums, 4u); }

@compute @workgroup_size(TILE_THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32,
        @builtin(subgroup_id) subgroup: u32) {
  multiply_tile(group, thread, subgroup);
}

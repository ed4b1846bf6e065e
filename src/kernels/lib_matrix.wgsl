// 16 x 16 matrices that the threads of a subgroup hold together; halves are multiplied, sums have single precision.
alias Four = vec4h;
alias HalfWord = f16;
alias Left = subgroup_matrix_left<f16, 16, 16>;
alias Right = subgroup_matrix_right<f16, 16, 16>;
alias Sums = subgroup_matrix_result<f32, 16, 16>;

fn subgroup_of(thread: u32) -> u32 { return subgroupBroadcastFirst(thread / 32u); }
fn to_four(v: vec4f) -> Four { return Four(v); }
fn of_four(four: Four) -> vec4f { return vec4f(four); }
// 16 rows of weights, from fours of w_tile; 16 rows of x, from halves.
fn load_left(at: u32) -> Left { return subgroupMatrixLoad<Left, row_major>(&w_tile, at, W_PITCH / 4u); }
fn load_right(at: u32, stride: u32) -> Right { return subgroupMatrixLoad<Right, col_major>(&halves, at, stride); }
fn multiply_add(a: Left, b: Right, sums: Sums) -> Sums { return subgroupMatrixMultiplyAccumulate(a, b, sums); }
// By tokens: 16 rows of the first, 16 of the next.
fn store_sums(at: u32, sums: Sums) { subgroupMatrixStore<col_major>(&patches, at, sums, 16u); }

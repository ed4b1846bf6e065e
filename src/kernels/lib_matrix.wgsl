// 16 x 16 matrices that the threads of a subgroup hold together; halves are multiplied, sums have single precision.
// Loads and stores say at compile time where in an array, and how far from row to row: where Dawn cannot see that they stay
// within, it makes both depend on a comparison, and the GPU has to compute every address.
alias Left = subgroup_matrix_left<f16, 16, 16>;
alias Right = subgroup_matrix_right<f16, 16, 16>;
alias Sums = subgroup_matrix_result<f32, 16, 16>;
alias Lefts = array<Left, LEFTS>;
alias Rights = array<Right, RIGHTS>;

// Of the 32 columns of a step the first or the last 16; rows of weights and of x from a block on.
fn first_lefts(block: u32) -> Lefts {
  var m: Lefts;
  for (var i = 0u; i < LEFTS; i++) { m[i] = subgroupMatrixLoad<Left, row_major>(&w_tile[block + i], 0u, PITCH); }
  return m;
}
fn last_lefts(block: u32) -> Lefts {
  var m: Lefts;
  for (var i = 0u; i < LEFTS; i++) { m[i] = subgroupMatrixLoad<Left, row_major>(&w_tile[block + i], 2u, PITCH); }
  return m;
}
fn first_rights(block: u32) -> Rights {
  var m: Rights;
  for (var i = 0u; i < RIGHTS; i++) { m[i] = subgroupMatrixLoad<Right, col_major>(&x_tile[block + i], 0u, PITCH); }
  return m;
}
fn last_rights(block: u32) -> Rights {
  var m: Rights;
  for (var i = 0u; i < RIGHTS; i++) { m[i] = subgroupMatrixLoad<Right, col_major>(&x_tile[block + i], 2u, PITCH); }
  return m;
}

fn multiply(sums: ptr<function, array<Sums, LEFTS * RIGHTS>>, w: Lefts, x: Rights) {
  var a = w;
  var b = x;
  for (var j = 0u; j < RIGHTS; j++) {
    for (var i = 0u; i < LEFTS; i++) {
      (*sums)[j * LEFTS + i] = subgroupMatrixMultiplyAccumulate(a[i], b[j], (*sums)[j * LEFTS + i]);
    }
  }
}

// By tokens: 16 rows of the first, 16 of the next.
fn store_sums(block: u32, sums: Sums) { subgroupMatrixStore<col_major>(&x_tile[block], 0u, sums, 4u); }

// Four nibbles, the lower ones of the bytes of a word, times an integer below 64, in the order of halves.wgsl: exact halves.
fn scaled_nibbles(q: u32, scale: f32) -> vec2u {
  let one = bitcast<vec2h>((q & 0xf000fu) | 0x64006400u) - vec2h(1024.0h);
  let other = bitcast<vec2h>(((q >> 8u) & 0xf000fu) | 0x64006400u) - vec2h(1024.0h);
  return vec2u(bitcast<u32>(one * f16(scale)), bitcast<u32>(other * f16(scale)));
}

@compute @workgroup_size(TILE_THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32,
        @builtin(subgroup_id) subgroup: u32) {
  multiply_tile(group, thread, subgroup);
}

// lib_matrix without subgroup matrices and half precision: of each 16 x 16 sums, 32 threads keep eight rows of one token.
// Slow; so that what surrounds the matrices can be tested anywhere.
alias Four = vec2u;
alias HalfWord = u32;
struct Right { at: u32, stride: u32 }
alias Sums = array<f32, 8>;

fn to_four(v: vec4f) -> Four { return Four(pack2x16float(v.xy), pack2x16float(v.zw)); }
fn of_four(four: Four) -> vec4f { return vec4f(unpack2x16float(four.x), unpack2x16float(four.y)); }

fn load_lefts(at: u32) -> u32 { return at; }
fn load_right(at: u32, stride: u32) -> Right { return Right(at, stride); }

fn multiply_patch(sums: ptr<function, array<Sums, 8>>, w_at: u32, x: Right, y: Right) {
  for (var n = 0u; n < 8u; n++) {
    let row = w_at + (n % 4u * 16u + lane / 16u * 8u) * (W_PITCH / 4u);
    let column = (select(y.at, x.at, n < 4u) + lane % 16u * x.stride) / 2u;
    for (var k = 0u; k < 4u; k++) {
      let four = of_four(Four(halves[column + k * 2u], halves[column + k * 2u + 1u]));
      for (var i = 0u; i < 8u; i++) { (*sums)[n][i] += dot(of_four(w_tile[row + i * (W_PITCH / 4u) + k]), four); }
    }
  }
}

fn store_sums(at: u32, sums: Sums) {
  for (var i = 0u; i < 8u; i++) { patches[at + lane % 16u * 16u + lane / 16u * 8u + i] = sums[i]; }
}
fn store_patches(sums: ptr<function, array<Sums, 8>>, subgroup: u32, row: u32, token: u32) {
  for (var n = 0u; n < 8u; n++) { store_patch((*sums)[n], subgroup, row + n % 4u * 16u, token + n / 4u * 16u); }
}

@compute @workgroup_size(TILE_THREADS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  multiply_tile(group, thread, thread / 32u);
}

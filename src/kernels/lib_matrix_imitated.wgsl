// lib_matrix without subgroup matrices and half precision: 32 threads each keep eight rows of one token. Slow; so that
// what surrounds the matrices can be tested anywhere.
alias Four = vec2u;
alias HalfWord = u32;
alias Left = u32;
struct Right { at: u32, stride: u32 }
alias Sums = array<f32, 8>;

fn subgroup_of(thread: u32) -> u32 { return thread / 32u; }
fn to_four(v: vec4f) -> Four { return Four(pack2x16float(v.xy), pack2x16float(v.zw)); }
fn of_four(four: Four) -> vec4f { return vec4f(unpack2x16float(four.x), unpack2x16float(four.y)); }
fn load_left(at: u32) -> Left { return at; }
fn load_right(at: u32, stride: u32) -> Right { return Right(at, stride); }
fn multiply_add(a: Left, b: Right, before: Sums) -> Sums {
  var sums = before;
  for (var k = 0u; k < 16u; k += 4u) {
    let at = (b.at + lane % 16u * b.stride + k) / 2u;
    let x = of_four(Four(halves[at], halves[at + 1u]));
    for (var i = 0u; i < 8u; i++) {
      sums[i] += dot(of_four(w_tile[a + (lane / 16u * 8u + i) * (W_PITCH / 4u) + k / 4u]), x);
    }
  }
  return sums;
}
fn store_sums(at: u32, sums: Sums) {
  for (var i = 0u; i < 8u; i++) { patches[at + lane % 16u * 16u + lane / 16u * 8u + i] = sums[i]; }
}

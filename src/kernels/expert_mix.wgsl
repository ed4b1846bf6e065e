// Where experts and the dense branch meet: mixed = sum over a of weights[a] * y[a]; with norm(v) = v / sqrt(mean(v^2) + eps),
// f = norm(dense) * dense_weight + norm(mixed) * mixed_weight; out = (x + norm(f) * weight) * scale
// one workgroup per token, PER values per thread; grid (tokens)
struct Params {
  y: u32, y_stride: u32, weights: u32, weights_stride: u32, dense: u32, dense_stride: u32,
  x: u32, x_stride: u32, out: u32, out_stride: u32, cols: u32, eps: f32, scale: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<Value>;
@group(0) @binding(2) var<storage, read> dense_weight: array<Value>;
@group(0) @binding(3) var<storage, read> mixed_weight: array<Value>;
@group(0) @binding(4) var<storage, read> weight: array<Value>;

// USED, the experts of a token, comes before this text.
fn norm_factor(squares: f32, thread: u32) -> f32 { return 1.0 / sqrt(reduce_sum(squares, thread) / f32(p.cols) + p.eps); }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let count = p.cols / WIDTH;
  let dense = (p.dense + group.x * p.dense_stride) / WIDTH;
  let x = (p.x + group.x * p.x_stride) / WIDTH;
  let out = (p.out + group.x * p.out_stride) / WIDTH;
  let y = (p.y + group.x * USED * p.y_stride) / WIDTH;
  var shares: array<f32, USED>;
  for (var a = 0u; a < USED; a++) { shares[a] = read1(p.weights + group.x * p.weights_stride + a); }
  // All that is read is asked for at once, lest each sum wait for memory anew.
  var own: array<Value, PER>;
  var mixed: array<Value, PER>;
  var added: array<Value, PER>;
  var own_squares = 0.0;
  var mixed_squares = 0.0;
  for (var n = 0u; n < PER; n++) {
    let i = thread + n * WG;
    if (i < count) {
      let value = arena[dense + i];
      own_squares += square(value);
      own[n] = value * dense_weight[i];
      var sum = Value();
      for (var a = 0u; a < USED; a++) { sum += shares[a] * arena[y + a * (p.y_stride / WIDTH) + i]; }
      mixed_squares += square(sum);
      mixed[n] = sum * mixed_weight[i];
      added[n] = arena[x + i];
    }
  }
  let own_factor = norm_factor(own_squares, thread);
  let mixed_factor = norm_factor(mixed_squares, thread);
  var squares = 0.0;
  for (var n = 0u; n < PER; n++) {
    let i = thread + n * WG;
    if (i < count) {
      let value = own[n] * own_factor + mixed[n] * mixed_factor;
      squares += square(value);
      own[n] = value * weight[i];
    }
  }
  let factor = norm_factor(squares, thread);
  for (var n = 0u; n < PER; n++) {
    let i = thread + n * WG;
    if (i < count) { arena[out + i] = (added[n] + own[n] * factor) * p.scale; }
  }
}

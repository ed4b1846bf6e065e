// softmax attention of every row of q over all rows of k and v, head by head; online softmax over tiles of KEYS keys
// one thread per query, which it keeps with its sums in registers; grid (rows, heads)
struct Params {
  q: u32, q_stride: u32, k: u32, k_stride: u32, v: u32, v_stride: u32, out: u32, out_stride: u32,
  rows: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;

// HEAD, the size of a head, comes before this text: a multiple of 4, at most 128.
const QUERIES: u32 = 64u;
const KEYS: u32 = 16u;  // a multiple of 4
const PARTS: u32 = HEAD / 4u;
var<workgroup> keys: array<vec4f, KEYS * PARTS>;
var<workgroup> values: array<vec4f, KEYS * PARTS>;

fn four(at: u32) -> vec4f { return vec4f(arena[at], arena[at + 1u], arena[at + 2u], arena[at + 3u]); }

@compute @workgroup_size(QUERIES)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let head = group.y * HEAD;
  let t = group.x * QUERIES + thread;
  let row = min(t, p.rows - 1u);  // threads beyond the last query still bring in keys
  var query: array<vec4f, PARTS>;
  var sums: array<vec4f, PARTS>;
  for (var i = 0u; i < PARTS; i++) { query[i] = four(p.q + row * p.q_stride + head + i * 4u); }
  var largest = -3.0e38;
  var total = 0.0;
  for (var first = 0u; first < p.rows; first += KEYS) {
    workgroupBarrier();
    for (var n = thread; n < KEYS * PARTS; n += QUERIES) {
      let j = min(first + n / PARTS, p.rows - 1u);
      let i = head + n % PARTS * 4u;
      keys[n] = four(p.k + j * p.k_stride + i);
      values[n] = four(p.v + j * p.v_stride + i);
    }
    workgroupBarrier();
    for (var k = 0u; k < KEYS; k += 4u) {
      let at = k * PARTS;
      var a = vec4f();
      var b = vec4f();
      var c = vec4f();
      var d = vec4f();
      for (var i = 0u; i < PARTS; i++) {
        a += query[i] * keys[at + i];
        b += query[i] * keys[at + PARTS + i];
        c += query[i] * keys[at + 2u * PARTS + i];
        d += query[i] * keys[at + 3u * PARTS + i];
      }
      let one = vec4f(1.0);
      let exists = vec4u(first + k) + vec4u(0u, 1u, 2u, 3u) < vec4u(p.rows);
      let scores = select(vec4f(-3.0e38), vec4f(dot(a, one), dot(b, one), dot(c, one), dot(d, one)), exists);
      let before = largest;
      largest = max(max(largest, max(scores.x, scores.y)), max(scores.z, scores.w));
      let rescale = exp(before - largest);
      let weights = exp(scores - largest);
      total = total * rescale + dot(weights, one);
      for (var i = 0u; i < PARTS; i++) {
        sums[i] = sums[i] * rescale + weights.x * values[at + i] + weights.y * values[at + PARTS + i] +
                  weights.z * values[at + 2u * PARTS + i] + weights.w * values[at + 3u * PARTS + i];
      }
    }
  }
  if (t >= p.rows) { return; }
  let out = p.out + t * p.out_stride + head;
  for (var i = 0u; i < PARTS; i++) {
    let result = sums[i] / total;
    arena[out + i * 4u] = result.x;
    arena[out + i * 4u + 1u] = result.y;
    arena[out + i * 4u + 2u] = result.z;
    arena[out + i * 4u + 3u] = result.w;
  }
}

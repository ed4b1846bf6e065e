// mat_mul with subgroup matrices: weights as halves in workgroup memory, x as halves.wgsl makes it, sums in single
// precision. SPLIT 1: halves alone; 2: x as sums of two; 3: weights too.
// one workgroup per tile of rows and tokens, those of the same rows side by side; grid (tokens, rows)
struct Params {
  pitch: u32, out: u32, out_stride: u32,
  rows: u32, cols: u32, tokens: u32, row_bytes: u32, scale: f32,
  in_min: f32, in_max: f32, out_min: f32, out_max: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<Word>;
@group(0) @binding(3) var<storage, read> halves: array<HalfWord>;
@group(0) @binding(4) var<storage, read> factors: array<f32>;

// A subgroup of 32 threads has a patch of 64 rows and 32 tokens: four matrices of weights times two of x.
const ROW_PATCHES: u32 = TILE_ROWS / 64u;
const TILE_THREADS: u32 = TILE_ROWS * TILE_TOKENS / 64u;
const W_PITCH: u32 = TILE_STEP + 8u;             // halves from row to row: so, eight rows lie in different banks
const PLANE: u32 = TILE_ROWS * W_PITCH / 4u;     // fours
const STAGE: u32 = PLANE * select(1u, 2u, SPLIT == 3u);
const RUNS: u32 = TILE_STEP / 16u;
// Weights are small: without this, what their halves leave would have few bits. They may be as large as 1000.
const W_SCALE: f32 = 64.0;
var<workgroup> w_tile: array<Four, 2u * STAGE>;  // one stage is filled while the other is multiplied
var<workgroup> patches: array<f32, TILE_THREADS * 8u>;
var<private> lane: u32;

fn word(i: u32) -> Word { return w[i]; }

fn bring_weights(stage: u32, first_row: u32, c: u32, thread: u32) {
  for (var n = thread; n < TILE_ROWS * RUNS; n += TILE_THREADS) {
    let row = n / RUNS;
    let k = n % RUNS * 16u;
    if (c + k >= p.cols) { continue; }  // x is zero there: weights of an earlier step will do
    let at = stage + (row * W_PITCH + k) / 4u;
    var weights = weights16(min(first_row + row, p.rows - 1u) * p.row_bytes + (c + k) / BLOCK * BLOCK_BYTES,
                            (c + k) % BLOCK / 16u);
    for (var i = 0u; i < 4u; i++) {
      let v = weights[i] * W_SCALE;
      if (SPLIT == 3u) {
        let high = bitcast<vec4f>(bitcast<vec4u>(v) & vec4u(0xffffe000u));  // as in halves.wgsl
        w_tile[at + i] = to_four(high);
        w_tile[at + PLANE + i] = to_four(v - high);
      } else {
        w_tile[at + i] = to_four(v);
      }
    }
  }
}

// Sixteen rows of sixteen tokens go out through the subgroup's part of `patches`.
fn store_patch(sums: Sums, subgroup: u32, first_row: u32, first_token: u32) {
  store_sums(subgroup * 256u, sums);
  workgroupBarrier();
  let t = first_token + lane / 2u;
  let row = first_row + lane % 2u * 8u;
  if (t < p.tokens) {
    let factor = factors[t] * (p.scale / W_SCALE);
    for (var i = 0u; i < 8u; i++) {
      if (row + i < p.rows) {
        arena[p.out + t * p.out_stride + row + i] = bounded_out(patches[subgroup * 256u + lane * 8u + i] * factor);
      }
    }
  }
  workgroupBarrier();
}

// What main does, which is in lib_matrix: it knows the subgroup.
fn multiply_tile(group: vec3u, thread: u32, subgroup: u32) {
  lane = thread % 32u;
  let first_row = group.y * TILE_ROWS;
  let row = subgroup % ROW_PATCHES * 64u;
  let token = group.x * TILE_TOKENS + subgroup / ROW_PATCHES * 32u;
  let x_row = 2u * p.pitch;  // halves of a row of x
  var sums: array<Sums, 8>;
  var stage = 0u;
  bring_weights(0u, first_row, 0u, thread);
  for (var c = 0u; c < p.cols; c += TILE_STEP) {
    workgroupBarrier();
    if (c + TILE_STEP < p.cols) { bring_weights(STAGE - stage, first_row, c + TILE_STEP, thread); }
    for (var k = 0u; k < TILE_STEP; k += 16u) {
      let w_at = stage + (row * W_PITCH + k) / 4u;
      let at = token * x_row + (c + k) / 32u * 64u + (c + k) % 32u;
      let high = load_lefts(w_at);
      let x = load_right(at, x_row);
      let y = load_right(at + 16u * x_row, x_row);
      multiply_patch(&sums, high, x, y);
      if (SPLIT >= 2u) {
        multiply_patch(&sums, high, load_right(at + 32u, x_row), load_right(at + 32u + 16u * x_row, x_row));
      }
      if (SPLIT == 3u) { multiply_patch(&sums, load_lefts(w_at + PLANE), x, y); }
    }
    stage = STAGE - stage;
  }
  store_patches(&sums, subgroup, first_row + row, token);
}

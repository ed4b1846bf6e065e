// mat_mul with subgroup matrices: weights as halves, x as halves.wgsl makes it, both in workgroup memory; sums in single
// precision. SPLIT 1: halves alone; 2: x as sums of two; 3: weights too. At the lines that begin with //: lowering writes what
// is done with each of a subgroup's sums: in an array that loops run over they would be put in slow memory.
// one workgroup per tile of rows and tokens, those of the same rows side by side; grid (tokens, rows)
struct Params {
  pitch: u32, out: u32, out_stride: u32,
  rows: u32, cols: u32, tokens: u32, row_bytes: u32, scale: f32,
  in_min: f32, in_max: f32, out_min: f32, out_max: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<Word>;
@group(0) @binding(3) var<storage, read> halves: array<vec4u>;
@group(0) @binding(4) var<storage, read> factors: array<f32>;

// A subgroup of 32 threads has a patch of 64 rows and PATCH tokens: four matrices of weights times PATCH / 16 of x.
const ROW_PATCHES: u32 = TILE_ROWS / 64u;
const TILE_THREADS: u32 = TILE_ROWS * TILE_TOKENS / (2u * PATCH);
// Words are 16 bytes, eight halves: a row has the columns of one step and a word more, so that eight rows lie in different banks.
// Sixteen rows are a block; blocks of high halves come before those of low ones, a stage's before the next one's.
const WORDS: u32 = TILE_STEP / 8u;
const SIXTEENS: u32 = TILE_STEP / 16u;
const PITCH: u32 = WORDS + 1u;
const W_PLANES: u32 = select(1u, 2u, SPLIT == 3u);
const X_PLANES: u32 = select(1u, 2u, SPLIT >= 2u);
const W_BLOCKS: u32 = TILE_ROWS / 16u;
const X_BLOCKS: u32 = TILE_TOKENS / 16u;
var<workgroup> w_tile: array<array<vec4u, 16u * PITCH>, STAGES * W_PLANES * W_BLOCKS>;
var<workgroup> x_tile: array<array<vec4u, 16u * PITCH>, STAGES * X_PLANES * X_BLOCKS>;
// What a thread brings: sixteens of weights, words of x. Those of the next step wait in registers while this one is multiplied.
const W_RUNS: u32 = (TILE_ROWS * SIXTEENS + TILE_THREADS - 1u) / TILE_THREADS;
const X_WORDS: u32 = TILE_TOKENS * WORDS * X_PLANES / TILE_THREADS;
struct Next { raws: array<Raw, W_RUNS>, x: array<vec4u, X_WORDS> }
// Matrices add up with truncation, which pulls long sums towards zero: after so many columns they are added to what was there.
const PART: u32 = 2048u;
// Weights are small: without this, what their halves leave would have few bits. They may be as large as 1000.
const W_SCALE: f32 = 64.0;
var<private> lane: u32;

fn word(i: u32) -> Word { return w[i]; }

fn ask(next: ptr<function, Next>, first_row: u32, first_token: u32, c: u32, thread: u32) {
  for (var i = 0u; i < W_RUNS; i++) {
    let n = thread + i * TILE_THREADS;
    let k = c + n % SIXTEENS * 16u;  // past the end x is zero, and any weights will do
    (*next).raws[i] = raw16(min(first_row + min(n / SIXTEENS, TILE_ROWS - 1u), p.rows - 1u), select(0u, k, k < p.cols));
  }
  for (var i = 0u; i < X_WORDS; i++) {
    let n = thread + i * TILE_THREADS;
    let t = first_token + n / (WORDS * X_PLANES);
    let plane = n / WORDS % X_PLANES;  // of each 32 columns four words, then the four of the other
    (*next).x[i] = halves[t * (p.pitch / 4u) + c / 32u * 8u + plane * 4u + c % 32u / 8u + n % WORDS];
  }
}

fn pack8(a: vec4f, b: vec4f) -> vec4u {
  return vec4u(pack2x16float(a.xy), pack2x16float(a.zw), pack2x16float(b.xy), pack2x16float(b.zw));
}
fn high(v: vec4f) -> vec4f { return bitcast<vec4f>(bitcast<vec4u>(v) & vec4u(0xffffe000u)); }  // as in halves.wgsl

fn keep(next: ptr<function, Next>, stage: u32, c: u32, thread: u32) {
  for (var i = 0u; i < W_RUNS; i++) {
    let n = thread + i * TILE_THREADS;
    if (n >= TILE_ROWS * SIXTEENS) { continue; }  // there may be less to bring than threads
    var u = sixteen((*next).raws[i], c + n % SIXTEENS * 16u);
    let block = stage * (W_PLANES * W_BLOCKS) + n / (16u * SIXTEENS);
    let at = n / SIXTEENS % 16u * PITCH + n % SIXTEENS * 2u;
    for (var h = 0u; h < 2u; h++) {
      let a = u[h * 2u];
      let b = u[h * 2u + 1u];
      if (SPLIT == 3u) {
        w_tile[block][at + h] = pack8(high(a), high(b));
        w_tile[block + W_BLOCKS][at + h] = pack8(a - high(a), b - high(b));
      } else {
        w_tile[block][at + h] = pack8(a, b);
      }
    }
  }
  for (var i = 0u; i < X_WORDS; i++) {
    let n = thread + i * TILE_THREADS;
    let t = n / (WORDS * X_PLANES);
    let plane = n / WORDS % X_PLANES;
    x_tile[(stage * X_PLANES + plane) * X_BLOCKS + t / 16u][t % 16u * PITCH + n % WORDS] = (*next).x[i];
  }
}

// Sixteen rows of sixteen tokens go out through OUT_TILE, where they are large enough blocks of x that nobody needs any more.
fn store_patch(sums: Sums, subgroup: u32, first_row: u32, first_token: u32, part: u32) {
  store_sums(subgroup, sums);
  workgroupBarrier();
  // Neighbouring threads write neighbours: 16 rows of two tokens at a time. What is added to is asked for all at once.
  let row = first_row + lane % 16u;
  let token = first_token + lane / 16u;
  let at = p.out + token * p.out_stride + row;
  var before: array<f32, 8>;
  for (var i = 0u; i < 8u; i++) {
    if (part > 0u && token + i * 2u < p.tokens && row < p.rows) { before[i] = arena[at + i * 2u * p.out_stride]; }
  }
  for (var i = 0u; i < 8u; i++) {
    if (token + i * 2u < p.tokens && row < p.rows) {
      let n = i * 32u + lane;
      let factor = factors[token + i * 2u] * (p.scale / W_SCALE);
      let sum = fma(bitcast<f32>(OUT_TILE[subgroup][n / 4u][n % 4u]), factor, before[i]);
      arena[at + i * 2u * p.out_stride] = select(sum, bounded_out(sum), part + PART >= p.cols);
    }
  }
  workgroupBarrier();
}

// What main does, which is in lib_matrix: it knows the subgroup.
fn multiply_tile(group: vec3u, thread: u32, subgroup: u32) {
  lane = thread % 32u;
  unit_begin(p.cols);
  let first_row = group.y * TILE_ROWS;
  let first_token = group.x * TILE_TOKENS;
  let row = subgroup % ROW_PATCHES * 64u;
  let token = subgroup / ROW_PATCHES * PATCH;
  //: sums
  var next: Next;
  var stage = 0u;
  ask(&next, first_row, first_token, 0u, thread);
  for (var part = 0u; part < p.cols; part += PART) {
    let end = min(part + PART, p.cols);
    for (var c = part; c < end; c += TILE_STEP) {
      if (STAGES == 1u) { workgroupBarrier(); }
      keep(&next, stage, c, thread);
      workgroupBarrier();
      if (c + TILE_STEP < p.cols) { ask(&next, first_row, first_token, c + TILE_STEP, thread); }
      let w_block = stage * (W_PLANES * W_BLOCKS) + row / 16u;
      let x_block = stage * (X_PLANES * X_BLOCKS) + token / 16u;
      //: multiply
      stage = (STAGES - 1u) - stage;
    }
    workgroupBarrier();
    //: store
  }
}

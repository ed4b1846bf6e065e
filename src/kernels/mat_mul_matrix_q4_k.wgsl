// mat_mul_matrix for Q4_K, exact with two products instead of three: a weight's nibble times its 6-bit scale is an integer below
// 1024, so a half; after each block of 256 columns sums are multiplied by the row's d, and what the minimums take off is
// computed from sums of 32 neighbours of x.
// one workgroup per tile of rows and tokens, those of the same rows side by side; grid (tokens, rows)
struct Params {
  pitch: u32, out: u32, out_stride: u32,
  rows: u32, cols: u32, tokens: u32, row_bytes: u32, scale: f32,
  in_min: f32, in_max: f32, out_min: f32, out_max: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> w: array<vec4u>;
@group(0) @binding(3) var<storage, read> halves: array<vec4u>;
@group(0) @binding(4) var<storage, read> factors: array<f32>;
@group(0) @binding(5) var<storage, read> x_sums: array<vec4f>;

// See mat_mul_matrix.wgsl.
const ROW_PATCHES: u32 = TILE_ROWS / 64u;
const TILE_THREADS: u32 = TILE_ROWS * TILE_TOKENS / 64u;
const PITCH: u32 = 5u;
const W_BLOCKS: u32 = TILE_ROWS / 16u;
const X_BLOCKS: u32 = TILE_TOKENS / 16u;
var<workgroup> w_tile: array<array<vec4u, 16u * PITCH>, W_BLOCKS>;
var<workgroup> x_tile: array<array<vec4u, 16u * PITCH>, 2u * X_BLOCKS>;
const W_RUNS: u32 = TILE_ROWS * 2u / TILE_THREADS;
const X_WORDS: u32 = TILE_TOKENS * 8u / TILE_THREADS;
struct Next { heads: array<vec4u, W_RUNS>, q: array<vec4u, W_RUNS>, x: array<vec4u, X_WORDS> }
// Of a block of 256 columns: a row's d and minimums, a token's sums.
var<workgroup> row_scales: array<f32, TILE_ROWS>;
var<workgroup> row_minimums: array<vec4f, TILE_ROWS * 2u>;
var<workgroup> token_sums: array<vec4f, TILE_TOKENS * 2u>;
var<private> lane: u32;

fn row_at(row: u32) -> u32 { return min(row, p.rows - 1u) * (p.row_bytes / 16u); }

fn ask(next: ptr<function, Next>, first_row: u32, first_token: u32, c: u32, thread: u32) {
  if (c % 64u == 0u) {  // low nibbles now, high ones with the next step
    for (var i = 0u; i < W_RUNS; i++) {
      let n = thread + i * TILE_THREADS;
      let at = row_at(first_row + n / 2u) + c / 256u * 9u;
      (*next).heads[i] = w[at];
      (*next).q[i] = w[at + 1u + c % 256u / 64u * 2u + n % 2u];
    }
  }
  for (var i = 0u; i < X_WORDS; i++) {
    let n = thread + i * TILE_THREADS;
    (*next).x[i] = halves[(first_token + n / 8u) * (p.pitch / 4u) + c / 4u + n % 8u];
  }
}

fn keep(next: ptr<function, Next>, c: u32, thread: u32) {
  let j = c % 256u / 32u;
  for (var i = 0u; i < W_RUNS; i++) {
    let n = thread + i * TILE_THREADS;
    let at = n / 2u % 16u * PITCH + n % 2u * 2u;
    let scale = scale_min_of((*next).heads[i].yzw, j).x;
    let q = (*next).q[i] >> vec4u(4u * (j & 1u));
    w_tile[n / 32u][at] = vec4u(scaled_nibbles(q.x, scale), scaled_nibbles(q.y, scale));
    w_tile[n / 32u][at + 1u] = vec4u(scaled_nibbles(q.z, scale), scaled_nibbles(q.w, scale));
  }
  for (var i = 0u; i < X_WORDS; i++) {
    let n = thread + i * TILE_THREADS;
    let t = n / 8u;
    x_tile[n / 4u % 2u * X_BLOCKS + t / 16u][t % 16u * PITCH + n % 4u] = (*next).x[i];
  }
}

fn keep_block(first_row: u32, first_token: u32, c: u32, thread: u32) {
  for (var n = thread; n < TILE_ROWS * 2u; n += TILE_THREADS) {
    let head = w[row_at(first_row + n / 2u) + c / 256u * 9u];
    let d = f16x2(head.x);
    let j = n % 2u * 4u;
    row_scales[n / 2u] = d.x;
    row_minimums[n] = d.y * vec4f(scale_min_of(head.yzw, j).y, scale_min_of(head.yzw, j + 1u).y,
                                  scale_min_of(head.yzw, j + 2u).y, scale_min_of(head.yzw, j + 3u).y);
  }
  for (var n = thread; n < TILE_TOKENS * 2u; n += TILE_THREADS) {
    token_sums[n] = x_sums[(first_token + n / 2u) * (p.pitch / 128u) + c / 128u + n % 2u];
  }
}

// Of 16 x 16 sums a thread has one row, and eight tokens, every other one.
struct Totals { early: vec4f, late: vec4f }
fn sum_at(block: u32, n: u32) -> f32 { return bitcast<f32>(x_tile[block][(n + lane) / 4u][lane % 4u]); }
fn less_at(low: vec4f, high: vec4f, t: u32) -> f32 {
  return dot(low, token_sums[t * 2u]) + dot(high, token_sums[t * 2u + 1u]);
}
fn add_scaled(totals: ptr<function, Totals>, block: u32, row: u32, token: u32) {
  let r = row + lane % 16u;
  let t = token + lane / 16u;
  let d = row_scales[r];
  let low = row_minimums[r * 2u];
  let high = row_minimums[r * 2u + 1u];
  (*totals).early += d * vec4f(sum_at(block, 0u), sum_at(block, 32u), sum_at(block, 64u), sum_at(block, 96u)) -
                     vec4f(less_at(low, high, t), less_at(low, high, t + 2u), less_at(low, high, t + 4u), less_at(low, high, t + 6u));
  (*totals).late += d * vec4f(sum_at(block, 128u), sum_at(block, 160u), sum_at(block, 192u), sum_at(block, 224u)) -
                    vec4f(less_at(low, high, t + 8u), less_at(low, high, t + 10u), less_at(low, high, t + 12u), less_at(low, high, t + 14u));
}

// Two at a time, through what x no longer needs.
fn add_two(a: Sums, b: Sums, totals_a: ptr<function, Totals>, totals_b: ptr<function, Totals>, subgroup: u32, row: u32, token: u32) {
  store_sums(subgroup * 2u, a);
  store_sums(subgroup * 2u + 1u, b);
  workgroupBarrier();
  add_scaled(totals_a, subgroup * 2u, row, token);
  add_scaled(totals_b, subgroup * 2u + 1u, row + 16u, token);
  workgroupBarrier();
}

fn put(value: f32, row: u32, t: u32) {
  if (row < p.rows && t < p.tokens) {
    arena[p.out + t * p.out_stride + row] = bounded_out(value * (factors[t] * p.scale));
  }
}
fn put_totals(totals: Totals, row: u32, token: u32) {
  let r = row + lane % 16u;
  let t = token + lane / 16u;
  put(totals.early.x, r, t);
  put(totals.early.y, r, t + 2u);
  put(totals.early.z, r, t + 4u);
  put(totals.early.w, r, t + 6u);
  put(totals.late.x, r, t + 8u);
  put(totals.late.y, r, t + 10u);
  put(totals.late.z, r, t + 12u);
  put(totals.late.w, r, t + 14u);
}

// What main does, which is in lib_matrix: it knows the subgroup.
fn multiply_tile(group: vec3u, thread: u32, subgroup: u32) {
  lane = thread % 32u;
  let first_row = group.y * TILE_ROWS;
  let first_token = group.x * TILE_TOKENS;
  let row = subgroup % ROW_PATCHES * 64u;
  let token = subgroup / ROW_PATCHES * 32u;
  let w_block = row / 16u;
  let x_block = token / 16u;
  var totals_0: Totals;
  var totals_1: Totals;
  var totals_2: Totals;
  var totals_3: Totals;
  var totals_4: Totals;
  var totals_5: Totals;
  var totals_6: Totals;
  var totals_7: Totals;
  var sums: array<Sums, 8>;
  var next: Next;
  ask(&next, first_row, first_token, 0u, thread);
  for (var c = 0u; c < p.cols; c += 32u) {
    workgroupBarrier();
    keep(&next, c, thread);
    if (c % 256u == 0u) { keep_block(first_row, first_token, c, thread); }
    workgroupBarrier();
    if (c + 32u < p.cols) { ask(&next, first_row, first_token, c + 32u, thread); }
    {
      let weights = first_lefts(w_block);
      multiply(&sums, weights, first_rights(x_block));
      multiply(&sums, weights, first_rights(x_block + X_BLOCKS));
    }
    {
      let weights = last_lefts(w_block);
      multiply(&sums, weights, last_rights(x_block));
      multiply(&sums, weights, last_rights(x_block + X_BLOCKS));
    }
    if (c % 256u == 224u) {
      workgroupBarrier();
      add_two(sums[0], sums[1], &totals_0, &totals_1, subgroup, row, token);
      add_two(sums[2], sums[3], &totals_2, &totals_3, subgroup, row + 32u, token);
      add_two(sums[4], sums[5], &totals_4, &totals_5, subgroup, row, token + 16u);
      add_two(sums[6], sums[7], &totals_6, &totals_7, subgroup, row + 32u, token + 16u);
      sums = array<Sums, 8>();
    }
  }
  put_totals(totals_0, first_row + row, first_token + token);
  put_totals(totals_1, first_row + row + 16u, first_token + token);
  put_totals(totals_2, first_row + row + 32u, first_token + token);
  put_totals(totals_3, first_row + row + 48u, first_token + token);
  put_totals(totals_4, first_row + row, first_token + token + 16u);
  put_totals(totals_5, first_row + row + 16u, first_token + token + 16u);
  put_totals(totals_6, first_row + row + 32u, first_token + token + 16u);
  put_totals(totals_7, first_row + row + 48u, first_token + token + 16u);
}

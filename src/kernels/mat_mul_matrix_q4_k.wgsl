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
const LEFTS: u32 = PATCH_ROWS / 16u;
const RIGHTS: u32 = PATCH_TOKENS / 16u;
const ROW_PATCHES: u32 = TILE_ROWS / PATCH_ROWS;
const TILE_THREADS: u32 = 32u * ROW_PATCHES * (TILE_TOKENS / PATCH_TOKENS);
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

// What main does, which is in lib_matrix: it knows the subgroup.
fn multiply_tile(group: vec3u, thread: u32, subgroup: u32) {
  lane = thread % 32u;
  let first_row = group.y * TILE_ROWS;
  let first_token = group.x * TILE_TOKENS;
  // A thread's sums, of each 16 x 16: one row, every other token.
  let row = subgroup % ROW_PATCHES * PATCH_ROWS + lane % 16u;
  let token = subgroup / ROW_PATCHES * PATCH_TOKENS + lane / 16u;
  let w_block = subgroup % ROW_PATCHES * LEFTS;
  let x_block = subgroup / ROW_PATCHES * RIGHTS;
  var totals: array<array<f32, 8>, LEFTS * RIGHTS>;
  var next: Next;
  ask(&next, first_row, first_token, 0u, thread);
  keep(&next, 0u, thread);
  keep_block(first_row, first_token, 0u, thread);
  workgroupBarrier();
  for (var first = 0u; first < p.cols; first += 256u) {
    var sums = array<Sums, LEFTS * RIGHTS>();  // said, because Dawn begins a variable in a loop with what it was
    for (var c = first; ; c += 32u) {
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
      workgroupBarrier();
      if (c + 32u == first + 256u) { break; }
      keep(&next, c + 32u, thread);
      workgroupBarrier();
    }
    // Two at a time, through what x no longer needs.
    for (var n = 0u; n < LEFTS * RIGHTS; n += 2u) {
      store_sums(subgroup * 2u, sums[n]);
      store_sums(subgroup * 2u + 1u, sums[n + 1u]);
      workgroupBarrier();
      for (var m = 0u; m < 2u; m++) {
        let r = row + (n + m) % LEFTS * 16u;
        let d = row_scales[r];
        let minimums = array<vec4f, 2>(row_minimums[r * 2u], row_minimums[r * 2u + 1u]);
        for (var i = 0u; i < 8u; i++) {
          let t = token + (n + m) / LEFTS * 16u + i * 2u;
          let at = i * 32u + lane;
          let less = dot(minimums[0], token_sums[t * 2u]) + dot(minimums[1], token_sums[t * 2u + 1u]);
          totals[n + m][i] += d * bitcast<f32>(x_tile[subgroup * 2u + m][at / 4u][at % 4u]) - less;
        }
      }
      workgroupBarrier();
    }
    if (first + 256u < p.cols) {
      keep(&next, first + 256u, thread);
      keep_block(first_row, first_token, first + 256u, thread);
      workgroupBarrier();
    }
  }
  for (var n = 0u; n < LEFTS * RIGHTS; n++) {
    let r = first_row + row + n % LEFTS * 16u;
    for (var i = 0u; i < 8u; i++) {
      let t = first_token + token + n / LEFTS * 16u + i * 2u;
      if (r < p.rows && t < p.tokens) {
        arena[p.out + t * p.out_stride + r] = bounded_out(totals[n][i] * (factors[t] * p.scale));
      }
    }
  }
}

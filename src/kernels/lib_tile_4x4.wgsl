// The sums of a thread of lib_tile: four rows and four tokens, one vector for each token.
const THREAD_SUMS: u32 = 4u;
const ROW_THREADS: u32 = TILE_ROWS / 4u;

fn thread_add(sums: ptr<function, array<vec4f, 4>>, k: u32, thread: u32) {
  let rows = w_four(k * (TILE_ROWS / 4u) + thread % ROW_THREADS);
  let tokens = x_four(k * (TILE_TOKENS / 4u) + thread / ROW_THREADS);
  (*sums)[0] += rows * tokens.x;
  (*sums)[1] += rows * tokens.y;
  (*sums)[2] += rows * tokens.z;
  (*sums)[3] += rows * tokens.w;
}

fn thread_store(sums: ptr<function, array<vec4f, 4>>, thread: u32) {
  let i = thread % ROW_THREADS * 4u;
  let j = thread / ROW_THREADS * 4u;
  tile_store(j, i, (*sums)[0]);
  tile_store(j + 1u, i, (*sums)[1]);
  tile_store(j + 2u, i, (*sums)[2]);
  tile_store(j + 3u, i, (*sums)[3]);
}

// The sums of a thread of lib_tile: four rows of each half of the tile and four tokens of each half, two vectors for each
// token. Written out, because an array that is indexed at run time may be put in slow memory.
const THREAD_SUMS: u32 = 16u;
const ROW_THREADS: u32 = TILE_ROWS / 8u;

fn thread_add(sums: ptr<function, array<vec4f, 16>>, k: u32, thread: u32) {
  let row = k * (TILE_ROWS / 4u) + thread % ROW_THREADS;
  let token = k * (TILE_TOKENS / 4u) + thread / ROW_THREADS;
  let r = w_four(row);
  let s = w_four(row + ROW_THREADS);
  let t = x_four(token);
  let u = x_four(token + TILE_TOKENS / 8u);
  (*sums)[0] += r * t.x;
  (*sums)[1] += s * t.x;
  (*sums)[2] += r * t.y;
  (*sums)[3] += s * t.y;
  (*sums)[4] += r * t.z;
  (*sums)[5] += s * t.z;
  (*sums)[6] += r * t.w;
  (*sums)[7] += s * t.w;
  (*sums)[8] += r * u.x;
  (*sums)[9] += s * u.x;
  (*sums)[10] += r * u.y;
  (*sums)[11] += s * u.y;
  (*sums)[12] += r * u.z;
  (*sums)[13] += s * u.z;
  (*sums)[14] += r * u.w;
  (*sums)[15] += s * u.w;
}

fn thread_store(sums: ptr<function, array<vec4f, 16>>, thread: u32) {
  let i = thread % ROW_THREADS * 4u;
  let j = thread / ROW_THREADS * 4u;
  tile_store(j, i, (*sums)[0]);
  tile_store(j, i + TILE_ROWS / 2u, (*sums)[1]);
  tile_store(j + 1u, i, (*sums)[2]);
  tile_store(j + 1u, i + TILE_ROWS / 2u, (*sums)[3]);
  tile_store(j + 2u, i, (*sums)[4]);
  tile_store(j + 2u, i + TILE_ROWS / 2u, (*sums)[5]);
  tile_store(j + 3u, i, (*sums)[6]);
  tile_store(j + 3u, i + TILE_ROWS / 2u, (*sums)[7]);
  tile_store(j + TILE_TOKENS / 2u, i, (*sums)[8]);
  tile_store(j + TILE_TOKENS / 2u, i + TILE_ROWS / 2u, (*sums)[9]);
  tile_store(j + TILE_TOKENS / 2u + 1u, i, (*sums)[10]);
  tile_store(j + TILE_TOKENS / 2u + 1u, i + TILE_ROWS / 2u, (*sums)[11]);
  tile_store(j + TILE_TOKENS / 2u + 2u, i, (*sums)[12]);
  tile_store(j + TILE_TOKENS / 2u + 2u, i + TILE_ROWS / 2u, (*sums)[13]);
  tile_store(j + TILE_TOKENS / 2u + 3u, i, (*sums)[14]);
  tile_store(j + TILE_TOKENS / 2u + 3u, i + TILE_ROWS / 2u, (*sums)[15]);
}

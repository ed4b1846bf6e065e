// Products of a quantised matrix with many tokens through subgroup matrices, with nothing but npm `webgpu`: kernels are put together
// here, so that variants can be timed without building anything.
//   node bench/matrices.mjs [--dawn allow_unsafe_apis,vulkan_enable_f16_on_nvidia] [--small] [--only TEXT] [--quick]
// For each type and shape the variants, the fastest first: TFLOP/s, us a product, and the largest error of a sample of sums
// relative to the norms of what was multiplied. --small: tiny shapes, and matrices imitated where there are none. --check: only
// whether the texts are valid, on a device that need not exist.
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { create, globals } from 'webgpu';

const { values: options } = parseArgs({
  options: { dawn: { type: 'string' }, kernels: { type: 'string', default: new URL('../src/kernels', import.meta.url).pathname },
    small: { type: 'boolean', default: false }, quick: { type: 'boolean', default: false }, only: { type: 'string' }, check: { type: 'boolean', default: false } },
});
const kernel = (name) => readFileSync(`${options.kernels}/${name}.wgsl`, 'utf8');
const BLOCK_BYTES = { Q4_K: 144, Q6_K: 224 };
const [ROUNDS, WARM_MS] = options.small ? [1, 0] : [9, 60];

// ---- the device
const gpu = create([...(options.check ? ['backend=null', 'enable-dawn-features=allow_unsafe_apis'] : []), ...(options.dawn ? [`enable-dawn-features=${options.dawn}`] : []), 'disable-dawn-features=timestamp_quantization']);
const adapter = await gpu.requestAdapter({ powerPreference: 'high-performance' });
const matrices = ['shader-f16', 'subgroups', 'chromium-experimental-subgroup-matrix'].every((name) => adapter.features.has(name));
if (!matrices && !options.small) throw new Error(`This adapter has no subgroup matrices: ${[...adapter.features].join(' ')}`);
const { maxBufferSize, maxStorageBufferBindingSize, maxComputeWorkgroupStorageSize, maxComputeInvocationsPerWorkgroup, maxComputeWorkgroupSizeX } = adapter.limits;
const device = await adapter.requestDevice({
  requiredFeatures: ['timestamp-query', ...(matrices ? ['shader-f16', 'subgroups', 'chromium-experimental-subgroup-matrix'] : [])],
  requiredLimits: { maxBufferSize, maxStorageBufferBindingSize, maxComputeWorkgroupStorageSize, maxComputeInvocationsPerWorkgroup, maxComputeWorkgroupSizeX },
});
let failure = null;
device.onuncapturederror = ({ error }) => { failure = error.message; };
setInterval(() => {}, 1000); // the GPU alone would not keep Node alive
const { STORAGE, UNIFORM, COPY_DST, COPY_SRC, MAP_READ, QUERY_RESOLVE } = globals.GPUBufferUsage;
const buffer = (size, usage) => device.createBuffer({ size, usage });

// ---- texts
const range = (n) => Array.from({ length: n }, (_, i) => i);
const lines = (n, line) => range(n).map(line).join('\n');

// What differs where there are no matrices: a matrix is its place, and 32 threads keep eight rows of one token of each sum.
const REAL = `
alias Left = subgroup_matrix_left<f16, 16, 16>;
alias Right = subgroup_matrix_right<f16, 16, 16>;
alias Sums = subgroup_matrix_result<f32, 16, 16>;
`;
const IMITATED = `
alias Sums = array<f32, 8>;
var<private> lane: u32;
fn halves8(v: vec4u) -> array<vec4f, 2> { return array<vec4f, 2>(vec4f(unpack2x16float(v.x), unpack2x16float(v.y)), vec4f(unpack2x16float(v.z), unpack2x16float(v.w))); }
fn imitate(s: ptr<function, Sums>, l: vec2u, r: vec2u) {
  for (var k = 0u; k < 2u; k++) {
    let x = halves8(x_tile[r.x][r.y + lane % 16u * PITCH + k]);
    for (var i = 0u; i < 8u; i++) {
      let a = halves8(w_tile[l.x][l.y + (lane / 16u * 8u + i) * PITCH + k]);
      (*s)[i] += dot(a[0], x[0]) + dot(a[1], x[1]);
    }
  }
}
`;
const load = (kind, name, array, at) => matrices
  ? `let ${name} = subgroupMatrixLoad<${kind}, ${kind === 'Left' ? 'row_major' : 'col_major'}>(&${array[0]}[${array[1]}], ${at}, PITCH);`
  : `let ${name} = vec2u(${array[1]}, ${at});`;
const multiply = (s, l, r) => (matrices ? `${s} = subgroupMatrixMultiplyAccumulate(${l}, ${r}, ${s});` : `imitate(&${s}, ${l}, ${r});`);
const store = (s, to) => matrices
  ? `subgroupMatrixStore<col_major>(&${to}[subgroup], 0u, ${s}, 4u);`
  : `for (var i = 0u; i < 8u; i++) { ${to}[subgroup][lane % 16u * 4u + lane / 16u * 2u + i / 4u][i % 4u] = bitcast<u32>(${s}[i]); }`;

// Sixteen weights: what is asked for early (`Raw`), their scale, and eight of them.
const FORMATS = {
  Q4_K: `
struct Raw { head: vec4u, q: vec4u }
fn raw16(row: u32, c: u32) -> Raw {
  let at = (min(row, p.rows - 1u) * p.row_bytes) / 16u + c / 256u * 9u;
  return Raw(w[at], w[at + 1u + c % 256u / 64u * 2u + c % 32u / 16u]);
}
fn scale_of(raw: Raw, c: u32) -> vec2f { return W_SCALE * f16x2(raw.head.x) * scale_min_of(raw.head.yzw, c % 256u / 32u); }
fn eight(raw: Raw, c: u32, scale: vec2f, h: u32) -> array<vec4f, 2> {
  let q = select(raw.q.xy, raw.q.zw, h == 1u) >> vec2u((c / 8u) & 4u);
  return array<vec4f, 2>(fma(nibbles(q.x), vec4f(scale.x), vec4f(-scale.y)), fma(nibbles(q.y), vec4f(scale.x), vec4f(-scale.y)));
}
fn nibbles(word: u32) -> vec4f {
  let bits = vec4u(word, word, word, word >> 12u) & vec4u(0xfu, 0xf00u, 0xf0000u, 0xf000u);
  return fma(bitcast<vec4f>(bits | vec4u(bits_2_23)), PLACES, -0x1p23f * PLACES);
}
`,
  Q6_K: `
struct Raw { low: vec4u, high: vec4u, scales: vec4u, d: vec4u }
fn raw16(row: u32, c: u32) -> Raw {
  let at = (min(row, p.rows - 1u) * p.row_bytes) / 16u + c / 256u * 14u;
  let h = c % 256u / 128u;
  let l = c % 32u / 16u;
  return Raw(w[at + 4u * h + c % 64u / 32u * 2u + l], w[at + 8u + 2u * h + l], w[at + 12u], w[at + 13u]);
}
fn scale_of(raw: Raw, c: u32) -> vec2f {
  let r = c % 256u / 16u;
  return vec2f(W_SCALE * f16x2(raw.d.x).x * f32(i8x4(raw.scales[r >> 2u] >> (8u * (r & 3u))).x), 0.0);
}
fn eight(raw: Raw, c: u32, scale: vec2f, h: u32) -> array<vec4f, 2> {
  let g = c % 128u / 32u;
  let low = (select(raw.low.xy, raw.low.zw, h == 1u) >> vec2u(4u * (g >> 1u))) & vec2u(0x0f0f0f0fu);
  let high = (select(raw.high.xy, raw.high.zw, h == 1u) >> vec2u(2u * g)) & vec2u(0x03030303u);
  let q = low | (high << vec2u(4u));
  return array<vec4f, 2>(scale.x * small4(q.x, 32.0), scale.x * small4(q.y, 32.0));
}
`,
};

const PARAMS = `
struct Params {
  pitch: u32, out: u32, out_stride: u32, rows: u32, cols: u32, tokens: u32, row_bytes: u32, scale: f32,
}
@group(0) @binding(0) var<uniform> p: Params;
`;
const HALF = `
const W_SCALE: f32 = 64.0;
fn high(v: vec4f) -> vec4f { return bitcast<vec4f>(bitcast<vec4u>(v) & vec4u(0xffffe000u)); }
fn pack8(a: vec4f, b: vec4f) -> vec4u { return vec4u(pack2x16float(a.xy), pack2x16float(a.zw), pack2x16float(b.xy), pack2x16float(b.zw)); }
`;

// Sums go out through workgroup memory, that of the weights where it has an array for each subgroup.
const reuses = (v) => { const high = v.blocks || v.engine ? 16 : v.pr; return (high * (v.step + 8)) / 8 >= 64 && v.stages * (v.split === 3 ? 2 : 1) * (v.tr / high) >= (v.tr / v.pr) * (v.tt / v.pt); };
const memory = (v) => ((v.engine && v.step >= 32) || (!v.engine && reuses(v)) ? 0 : (v.tr / v.pr) * (v.tt / v.pt) * 1024) + v.stages * (v.split === 3 ? 2 : 1) * v.tr * (v.step + 8) * 2 + v.stages * (v.split >= 2 ? 2 : 1) * v.tt * (v.step + 8) * 2;

// Variants: tr x tt rows and tokens a workgroup, pr x pt a subgroup, `step` columns at a time, `stages` 1 or 2, split 1 to 3;
// halves: weights come as halves from a pass before; without: what is left out, for timing (w, x: bringing them; s: loads from
// workgroup memory; m: products).
function text(type, v) {
  // Edits of the engine's text show what its parts cost; without them results are less exact.
  if (v.engine) {
    return (v.edit ? EDITS[v.edit] : []).reduce((code, [from, to]) => {
      if (!code.includes(from)) throw new Error(`The text has no "${from}".`);
      return code.replaceAll(from, to);
    }, engineText(type, v));
  }
  const rowPatches = v.tr / v.pr, patches = rowPatches * (v.tt / v.pt), threads = patches * 32;
  const pitch = (v.step + 8) / 8; // in words of 16 bytes
  const wPlanes = v.split === 3 ? 2 : 1, xPlanes = v.split >= 2 ? 2 : 1;
  const without = v.without ?? '';
  const unit = Math.min(16, (v.tr * v.step) / threads); // weights a thread makes together, 8 or 16
  const wRuns = (v.tr * v.step) / unit / threads;
  const hWords = (v.tr * wPlanes * v.step) / 8 / threads; // where they come as halves
  const xWords = (v.tt * v.step * xPlanes) / 8 / threads;
  // A thread's word of x in a row's part for a step: neighbours are words of one plane (four for each 32 columns), then of the next.
  const eighths = v.step / 8, parts = eighths * xPlanes;
  const xN = (i) => `(thread + ${i * threads}u)`;
  const xToken = (i) => `(${xN(i)} / ${parts}u)`;
  const xPlane = (i) => (v.step === 16 ? `${xN(i)} % ${parts}u / 2u` : `${xN(i)} / 4u % ${xPlanes}u`);
  const xWord = (i) => (v.step === 16 ? `${xN(i)} % 2u` : `(${xN(i)} % 4u + ${xN(i)} % ${parts}u / ${4 * xPlanes}u * 4u)`);
  const xPart = (i) => (v.step === 16 ? `next % 32u / 8u + ${xN(i)} % 2u + ${xPlane(i)} * 4u` : xPlanes === 2 ? `${xN(i)} % ${parts}u` : `(${xN(i)} % 4u + ${xN(i)} % ${parts}u / 4u * 8u)`);
  if (unit % 8 !== 0 || !Number.isInteger(wRuns) || !Number.isInteger(xWords) || !Number.isInteger(hWords)) return null;
  const [wHigh, xHigh] = v.blocks ? [16, 16] : [v.pr, v.pt]; // rows and tokens of an inner array
  const wLen = wHigh * pitch, xLen = xHigh * pitch, wArrays = v.tr / wHigh, xArrays = v.tt / xHigh;
  const [nr, nt] = [v.pr / 16, v.pt / 16];
  const ask = () => [
    ...(without.includes('w') ? [] : v.halves
      ? range(hWords).map((i) => { const n = `(thread + ${i * threads}u)`; return `hw${i} = wh[(first_row + ${n} / ${v.step / 8}u % ${v.tr}u) * (p.pitch * ${wPlanes}u / 8u) + next / 8u + ${n} % ${v.step / 8}u + ${n} / ${(v.step / 8) * v.tr}u * (p.pitch / 8u)];`; })
      : range(wRuns).map((i) => `raw${i} = raw16(first_row + (thread + ${i * threads}u) / ${v.step / unit}u, next + (thread + ${i * threads}u) % ${v.step / unit}u * ${unit}u);`)),
    ...(without.includes('x') ? [] : range(xWords).map((i) => `xw${i} = halves[(first_token + ${xToken(i)}) * (p.pitch / 4u) + next / 32u * 8u + ${xPart(i)}];`)),
  ].join('\n');
  const wPlace = (row, k8, plane) => `w_tile[(stage * ${wPlanes}u + ${plane}u) * ${wArrays}u + ${row} / ${wHigh}u][${row} % ${wHigh}u * PITCH + ${k8}]`;
  const keep = () => [
    ...(without.includes('w') ? [] : v.halves
      ? range(hWords).map((i) => { const n = `(thread + ${i * threads}u)`; return `${wPlace(`(${n} / ${v.step / 8}u % ${v.tr}u)`, `${n} % ${v.step / 8}u`, 0).replace(`+ 0u)`, `+ ${n} / ${(v.step / 8) * v.tr}u)`)} = hw${i};`; })
      : range(wRuns).map((i) => {
        const n = `(thread + ${i * threads}u)`, row = `(${n} / ${v.step / unit}u)`, k = `${n} % ${v.step / unit}u * ${unit}u`;
        const put = (h) => `{ var u = eight(raw${i}, next + ${k}, scale, ${unit === 16 ? `${h}u` : `(${k}) / 8u % 2u`});\n` + (v.split === 3
          ? `${wPlace(row, `(${k}) / 8u + ${h}u`, 0)} = pack8(high(u[0]), high(u[1]));\n${wPlace(row, `(${k}) / 8u + ${h}u`, 1)} = pack8(u[0] - high(u[0]), u[1] - high(u[1])); }`
          : `${wPlace(row, `(${k}) / 8u + ${h}u`, 0)} = pack8(u[0], u[1]); }`);
        return `{ let scale = scale_of(raw${i}, next + ${k});\n${range(unit / 8).map(put).join('\n')} }`;
      })),
    ...(without.includes('x') ? [] : range(xWords).map((i) => `x_tile[(stage * ${xPlanes}u + ${xPlane(i)}) * ${xArrays}u + ${xToken(i)} / ${xHigh}u][${xToken(i)} % ${xHigh}u * PITCH + ${xWord(i)}] = xw${i};`)),
  ].join('\n');
  const wArray = (plane) => ['w_tile', `(stage * ${wPlanes}u + ${plane}u) * ${wArrays}u + row_patch * ${v.pr / wHigh}u`];
  const xArray = (plane) => ['x_tile', `(stage * ${xPlanes}u + ${plane}u) * ${xArrays}u + token_patch * ${v.pt / xHigh}u`];
  const loads = (kind, letter, array, n, k) => range(n).map((i) => (v.blocks ? load(kind, `${letter}${i}`, [array[0], `${array[1]} + ${i}u`], `${k / 8}u`) : load(kind, `${letter}${i}`, array, `${(i * 16 * pitch) + k / 8}u`))).join('\n');
  const products = (l, r) => range(nt).flatMap((j) => range(nr).map((i) => multiply(`s${i}_${j}`, `${l}${i}`, `${r}${j}`))).join('\n');
  const written = (k) => `{
${loads('Left', 'a', wArray(0), nr, k)}
${loads('Right', 'x', xArray(0), nt, k)}
${products('a', 'x')}
${v.split === 3 ? `${loads('Left', 'b', wArray(1), nr, k)}\n${products('b', 'x')}` : ''}
${v.split >= 2 ? `${loads('Right', 'y', xArray(1), nt, k)}\n${products('a', 'y')}` : ''}
}`;
  // A left matrix at a time, so that fewer are held at once.
  const sparing = (k) => `{
${loads('Right', 'x', xArray(0), nt, k)}
${v.split >= 2 ? loads('Right', 'y', xArray(1), nt, k) : ''}
${range(nr).map((i) => {
    const one = (kind, letter, array) => loads(kind, letter, array, nr, k).split('\n')[i];
    const row = (l, r) => range(nt).map((j) => multiply(`s${i}_${j}`, `${l}${i}`, `${r}${j}`)).join('\n');
    return [one('Left', 'a', wArray(0)), row('a', 'x'), ...(v.split >= 2 ? [row('a', 'y')] : []), ...(v.split === 3 ? [one('Left', 'b', wArray(1)), row('b', 'x')] : [])].join('\n');
  }).join('\n')}
}`;
  // The same with arrays and loops, which the compiler has to unroll; with blocks alone.
  const loop = (n, line) => `for (var i = 0u; i < ${n}u; i++) { ${line} }`;
  const looped = (k) => {
    const get = (kind, letter, array, n) => `var ${letter}: array<${matrices ? kind : 'vec2u'}, ${n}>;\n${loop(n, load(kind, 'one', [array[0], `${array[1]} + i`], `${k / 8}u`) + ` ${letter}[i] = one;`)}`;
    const times = (l, r) => `for (var j = 0u; j < ${nt}u; j++) { ${loop(nr, multiply(`s[j * ${nr}u + i]`, `${l}[i]`, `${r}[j]`))} }`;
    return `{
${get('Left', 'a', wArray(0), nr)}
${get('Right', 'x', xArray(0), nt)}
${times('a', 'x')}
${v.split === 3 ? `${get('Left', 'b', wArray(1), nr)}\n${times('b', 'x')}` : ''}
${v.split >= 2 ? `${get('Right', 'y', xArray(1), nt)}\n${times('a', 'y')}` : ''}
}`;
  };
  const step = v.loops ? looped : v.sparing ? sparing : written;
  const all = range(v.step / 16).map((k) => step(k * 16)).join('\n');
  const inner = without.includes('m') ? '' : without.includes('s') ? all.replace(/let [abxy]\d = .*\n/g, '') : all;
  const outer = without.includes('s') ? `let stage = 0u;\n${['Left,a,0', 'Left,b,1'].slice(0, wPlanes).map((e) => e.split(',')).map(([kind, l, plane]) => loads(kind, l, wArray(plane), nr, 0)).join('\n')}
${['x', 'y'].slice(0, xPlanes).map((l, plane) => loads('Right', l, xArray(plane), nt, 0)).join('\n')}` : '';
  return `${matrices ? 'enable f16;\nenable subgroups;\nenable chromium_experimental_subgroup_matrix;\n' : ''}${PARAMS}
@group(0) @binding(1) var<storage, read_write> arena: array<f32>;
@group(0) @binding(2) var<storage, read> halves: array<vec4u>;
@group(0) @binding(3) var<storage, read> factors: array<f32>;
@group(0) @binding(4) var<storage, read> ${v.halves ? 'wh' : 'w'}: array<vec4u>;
const PITCH: u32 = ${pitch}u;
const STAGES: u32 = ${v.stages}u;
var<workgroup> w_tile: array<array<vec4u, ${wLen}>, ${v.stages * wPlanes * wArrays}>;
var<workgroup> x_tile: array<array<vec4u, ${xLen}>, ${v.stages * xPlanes * xArrays}>;
${reuses(v) ? '' : `var<workgroup> patches: array<array<vec4u, 64>, ${patches}>;`}
${matrices ? REAL : IMITATED}${HALF}${v.halves ? '' : kernel('lib_numbers') + kernel('lib_small') + FORMATS[type]}
@compute @workgroup_size(${threads})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32${matrices ? ', @builtin(subgroup_id) subgroup: u32' : ''}) {
  ${matrices ? 'let lane = thread % 32u;' : 'let subgroup = thread / 32u; lane = thread % 32u;'}
  ${v.halves ? '' : 'unit_begin(p.cols);'}
  let first_row = group.y * ${v.tr}u;
  let first_token = group.x * ${v.tt}u;
  let row_patch = subgroup % ${rowPatches}u;
  let token_patch = subgroup / ${rowPatches}u;
  ${v.halves ? lines(hWords, (i) => `var hw${i}: vec4u;`) : lines(wRuns, (i) => `var raw${i}: Raw;`)}
  ${lines(xWords, (i) => `var xw${i}: vec4u;`)}
  ${v.loops ? `var s: array<Sums, ${nr * nt}>;` : range(nt).map((j) => lines(nr, (i) => `var s${i}_${j}: Sums;`)).join('\n')}
  {
    let next = 0u; let stage = 0u;
    ${ask()}
    ${keep()}
  }
  workgroupBarrier();
  ${outer}
  ${v.stages === 1 && !without.includes('s') ? 'let stage = 0u;' : ''}
  var turn = 0u;
  for (var c = 0u; c < p.cols; c += ${v.step}u) {
    let next = c + ${v.step}u;
    if (next < p.cols) {
      ${ask()}
    }
    { ${v.stages === 2 && !without.includes('s') ? 'let stage = turn;' : ''}
    ${inner}
    }
    turn = (STAGES - 1u) - turn;
    ${v.stages === 1 ? 'workgroupBarrier();' : ''}
    if (next < p.cols) {
      let stage = turn;
      ${keep()}
    }
    workgroupBarrier();
  }
  ${range(nt).flatMap((j) => range(nr).map((i) => `{
    ${store(v.loops ? `s[${j * nr + i}]` : `s${i}_${j}`, reuses(v) ? 'w_tile' : 'patches')}
    workgroupBarrier();
    let row = first_row + row_patch * ${v.pr}u + ${i * 16}u + lane % 16u;
    for (var i = 0u; i < 8u; i++) {
      let t = first_token + token_patch * ${v.pt}u + ${j * 16}u + i * 2u + lane / 16u;
      let n = i * 32u + lane;
      if (t < p.tokens && row < p.rows) { arena[p.out + t * p.out_stride + row] = bitcast<f32>(${reuses(v) ? 'w_tile' : 'patches'}[subgroup][n / 4u][n % 4u]) * (factors[t] * (p.scale / W_SCALE)); }
    }
    workgroupBarrier();
  }`)).join('\n')}
}
`;
}

// The engine's own text, as src/graph/lowering_tiles.cc puts it together.
function enginePatch(v) {
  const sums = [], put = [], times = [], across = v.pt / 16;
  for (let j = 0; j < across; j++) {
    for (let i = 0; i < 4; i++) {
      sums.push(`var s${i}_${j} = Sums();`);
      put.push(`store_patch(s${i}_${j}, subgroup, first_row + row + ${i * 16}u, first_token + token + ${j * 16}u, part);\ns${i}_${j} = Sums();`);
    }
  }
  for (let k = 0; k < v.step / 16; k++) {
    const load = (letter, n, from) => times.push(`let ${letter}${n} = ${from[0] === 'w' ? 'left' : 'right'}_${k}(${from} + ${n}u);`);
    const loads = (letter, count, from) => range(count).forEach((n) => load(letter, n, from));
    const row = (i, l, r) => range(across).forEach((j) => times.push(`s${i}_${j} = subgroupMatrixMultiplyAccumulate(${l}${i}, ${r}${j}, s${i}_${j});`));
    const rows = (l, r) => range(4).forEach((i) => row(i, l, r));
    times.push('{');
    loads('x', across, 'x_block');
    if (across === 2) {
      loads('a', 4, 'w_block');
      rows('a', 'x');
      if (v.split === 3) { loads('b', 4, 'w_block + W_BLOCKS'); rows('b', 'x'); }
      if (v.split >= 2) { loads('y', across, 'x_block + X_BLOCKS'); rows('a', 'y'); }
    } else {
      if (v.split >= 2) loads('y', across, 'x_block + X_BLOCKS');
      for (let i = 0; i < 4; i++) {
        load('a', i, 'w_block');
        row(i, 'a', 'x');
        if (v.split >= 2) row(i, 'a', 'y');
        if (v.split === 3) { load('b', i, 'w_block + W_BLOCKS'); row(i, 'b', 'x'); }
      }
    }
    times.push('}');
  }
  return { sums: sums.join('\n'), multiply: times.join('\n'), store: put.join('\n') };
}
const engineText = (type, v) => Object.entries(enginePatch(v)).reduce((text, [mark, lines]) => text.replace(`//: ${mark}\n`, `${lines}\n`), engineOutline(type, v)).replaceAll('OUT_TILE', v.step >= 32 ? 'x_tile' : 'out_tile') + (v.step >= 32 ? '' : 'var<workgroup> out_tile: array<array<vec4u, 64>, TILE_THREADS / 32u>;\n');
const engineOutline = (type, v) => `${matrices ? 'enable f16;\nenable subgroups;\nenable chromium_experimental_subgroup_matrix;\n' : ''}alias Word = vec4u;
const TILE_ROWS: u32 = ${v.tr}u;
const TILE_TOKENS: u32 = ${v.tt}u;
const TILE_STEP: u32 = ${v.step}u;
const SPLIT: u32 = ${v.split}u;
const STAGES: u32 = ${v.stages}u;
const PATCH: u32 = ${v.pt}u;
${['lib_numbers', 'lib_small', `lib_sixteen_${type.toLowerCase()}`, 'lib_no_bounds', matrices ? 'lib_matrix' : 'lib_matrix_imitated', 'mat_mul_matrix'].map(kernel).join('')}`;

const EDITS = {
  'parts of 4096': [['const PART: u32 = 2048u', 'const PART: u32 = 4096u']],
  'no parts': [['const PART: u32 = 2048u', 'const PART: u32 = 1048576u']],
};

// Weights as halves, for `halves`: high and, where split is 3, low.
const halvesText = (type, v) => `${PARAMS}
@group(0) @binding(1) var<storage, read_write> out: array<vec4u>;
@group(0) @binding(2) var<storage, read> w: array<vec4u>;
${HALF}${kernel('lib_numbers')}${kernel('lib_small')}${FORMATS[type]}
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  unit_begin(p.cols);
  let row = group.y;
  let c = (group.x * 256u + thread) * 16u;
  if (c >= p.cols) { return; }
  let raw = raw16(row, c);
  let scale = scale_of(raw, c);
  var u = array<array<vec4f, 2>, 2>(eight(raw, c, scale, 0u), eight(raw, c, scale, 1u));
  let at = row * (p.pitch * ${v.split === 3 ? 2 : 1}u / 8u) + c / 8u;
  for (var i = 0u; i < 2u; i++) {
    ${v.split === 3 ? 'out[at + i] = pack8(high(u[i][0]), high(u[i][1])); out[at + p.pitch / 8u + i] = pack8(u[i][0] - high(u[i][0]), u[i][1] - high(u[i][1]));' : 'out[at + i] = pack8(u[i][0], u[i][1]);'}
  }
}
`;

// ---- noise, and what it is
const random = (() => { let s = 12345; return () => { s = (Math.imul(s, 1664525) + 1013904223) >>> 0; return s / 2 ** 32; }; })();
const half = (bits) => { const e = (bits >> 10) & 31, m = bits & 1023; return (bits >> 15 ? -1 : 1) * (e === 0 ? m * 2 ** -24 : (1024 + m) * 2 ** (e - 25)); };
function block(type) {
  const bytes = Uint8Array.from({ length: BLOCK_BYTES[type] }, () => random() * 256);
  const view = new DataView(bytes.buffer);
  const small = () => 0x0400 + Math.floor(random() * 0x0c00); // 2^-14 to 2^-11
  if (type === 'Q4_K') { view.setUint16(0, small(), true); view.setUint16(2, small(), true); } else view.setUint16(208, small() - 0x200, true);
  return bytes;
}
function decode(type, b) { // 256 weights
  const out = new Float64Array(256);
  const view = new DataView(b.buffer, b.byteOffset, b.byteLength);
  for (let i = 0; i < 256; i++) {
    if (type === 'Q4_K') {
      const j = i >> 5, s = b.subarray(4, 16);
      const sc = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | ((s[j - 4] >> 6) << 4);
      const mn = j < 4 ? s[j + 4] & 63 : (s[j + 4] >> 4) | ((s[j] >> 6) << 4);
      const q = (b[16 + (i >> 6) * 32 + (i & 31)] >> (4 * (j & 1))) & 15;
      out[i] = half(view.getUint16(0, true)) * sc * q - half(view.getUint16(2, true)) * mn;
    } else {
      const h = i >> 7, g = (i >> 5) & 3, l = i & 31;
      const low = (b[64 * h + 32 * (g & 1) + l] >> (4 * (g >> 1))) & 15, top = (b[128 + 32 * h + l] >> (2 * g)) & 3;
      out[i] = half(view.getUint16(208, true)) * view.getInt8(192 + (i >> 4)) * ((low | (top << 4)) - 32);
    }
  }
  return out;
}

// ---- one matrix and its x
const PATTERN = 61; // different rows
function prepare(type, [rows, cols, tokens]) {
  const blocks = cols / 256, rowBytes = blocks * BLOCK_BYTES[type];
  const kinds = range(Math.min(97, PATTERN * blocks)).map(() => block(type)); // rows are made of these
  const decoded = kinds.map((b) => decode(type, b));
  const kindOf = (row, b) => (row % PATTERN * 31 + b * 7 + (b >> 3)) % kinds.length;
  const pattern = new Uint8Array(PATTERN * rowBytes);
  for (let row = 0; row < PATTERN; row++) for (let b = 0; b < blocks; b++) pattern.set(kinds[kindOf(row, b)], row * rowBytes + b * BLOCK_BYTES[type]);
  const weights = buffer(Math.ceil((rows * rowBytes) / 16) * 16, STORAGE | COPY_DST);
  for (let row = 0; row < rows; row += PATTERN) device.queue.writeBuffer(weights, row * rowBytes, pattern, 0, Math.min(PATTERN, rows - row) * rowBytes);
  const x = new Float32Array(tokens * cols).map(() => { const u = random() - 0.5; return u * u * u * 20; });
  const outAt = Math.ceil((tokens * cols) / 64) * 64;
  const arena = buffer((outAt + tokens * rows) * 4, STORAGE | COPY_DST | COPY_SRC);
  device.queue.writeBuffer(arena, 0, x);
  const pitch = Math.ceil(cols / 64) * 64, padded = Math.ceil(tokens / 256) * 256;
  const halves = buffer(padded * pitch * 4, STORAGE), factors = buffer(padded * 4, STORAGE);
  const params = buffer(64, UNIFORM | COPY_DST);
  device.queue.writeBuffer(params, 0, new Uint32Array([pitch, outAt, rows, rows, cols, tokens, rowBytes, 0x3f800000]));
  // halves.wgsl, once
  const hp = buffer(64, UNIFORM | COPY_DST);
  device.queue.writeBuffer(hp, 0, new Uint32Array([0, cols, cols, pitch]));
  const pipeline = device.createComputePipeline({ layout: 'auto', compute: { module: device.createShaderModule({ code: `const WG: u32 = 128u;\n${kernel('lib_reduce')}${kernel('lib_no_bounds')}${kernel('halves')}` }) } });
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, bind(pipeline, [hp, arena, halves, factors]));
  pass.dispatchWorkgroups(tokens);
  pass.end();
  device.queue.submit([encoder.finish()]);
  const sample = [];
  for (let i = 0; i < 64; i++) {
    const row = i === 0 ? rows - 1 : Math.floor(random() * rows), t = i === 1 ? tokens - 1 : Math.floor(random() * tokens);
    let sum = 0, ww = 0, xx = 0;
    for (let c = 0; c < cols; c++) { const a = decoded[kindOf(row, c >> 8)][c & 255], b = x[t * cols + c]; sum += a * b; ww += a * a; xx += b * b; }
    sample.push({ row, t, sum, norm: Math.sqrt(ww * xx) });
  }
  return { rows, cols, tokens, weights, arena, outAt, pitch, halves, factors, params, sample, destroy() { for (const b of [weights, arena, halves, factors]) b.destroy(); } };
}
const bind = (pipeline, buffers) => device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries: buffers.map((b, binding) => ({ binding, resource: { buffer: b } })) });

const queries = device.createQuerySet({ type: 'timestamp', count: 2 });
const [resolved, readable] = [buffer(16, QUERY_RESOLVE | COPY_SRC), buffer(16, MAP_READ | COPY_DST)];
async function error(of) {
  let worst = 0;
  const staging = buffer(of.tokens * of.rows * 4, MAP_READ | COPY_DST);
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(of.arena, of.outAt * 4, staging, 0, of.tokens * of.rows * 4);
  device.queue.submit([encoder.finish()]);
  await staging.mapAsync(globals.GPUMapMode.READ);
  const got = new Float32Array(staging.getMappedRange());
  for (const { row, t, sum, norm } of of.sample) { const e = Math.abs(got[t * of.rows + row] - sum) / norm; if (!(e <= worst)) worst = e; }
  staging.destroy();
  return worst;
}

// All are compiled before any is timed: a GPU that waits for a compiler lowers its clock.
async function compile(type, v) {
  if (memory(v) > maxComputeWorkgroupStorageSize) return { note: `${memory(v)} bytes of workgroup memory` };
  const code = text(type, v);
  if (code === null) return { note: 'does not divide' };
  const began = performance.now();
  try {
    const pipeline = await device.createComputePipelineAsync({ layout: 'auto', compute: { module: device.createShaderModule({ code }) } });
    return { pipeline, compiled: performance.now() - began };
  } catch (e) {
    return { note: String(e.message).split('\n')[0] };
  }
}

async function measure(type, of, v, { pipeline, compiled }) {
  failure = null;
  let before = null, beforeGroup = null, wh = null;
  if (v.halves) {
    wh = buffer((of.rows + 256) * of.pitch * (v.split === 3 ? 4 : 2), STORAGE);
    before = device.createComputePipeline({ layout: 'auto', compute: { module: device.createShaderModule({ code: halvesText(type, v) }) } });
    beforeGroup = bind(before, [of.params, wh, of.weights]);
  }
  const without = v.without ?? '';
  const group = device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries: (v.engine ? [of.params, of.arena, of.weights, of.halves, of.factors] : [of.params, of.arena, of.halves, of.factors, wh ?? of.weights])
    .map((b, binding) => ({ binding, resource: { buffer: b } })).filter(({ binding }) => !(binding === 2 && without.includes('x')) && !(binding === 4 && without.includes('w'))) });
  const prepass = (pass) => { pass.setPipeline(before); pass.setBindGroup(0, beforeGroup); pass.dispatchWorkgroups(Math.ceil(of.cols / 4096), of.rows); };
  const run = async (products, timed) => {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass(timed ? { timestampWrites: { querySet: queries, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 } } : undefined);
    for (let i = 0; i < products; i++) {
      if (before && (v.halves === 'each' || !timed)) prepass(pass);
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(Math.ceil(of.tokens / v.tt), Math.ceil(of.rows / v.tr));
    }
    pass.end();
    if (timed) {
      encoder.resolveQuerySet(queries, 0, 2, resolved, 0);
      encoder.copyBufferToBuffer(resolved, 0, readable, 0, 16);
    }
    device.queue.submit([encoder.finish()]);
    if (!timed) { await device.queue.onSubmittedWorkDone(); return 0; }
    await readable.mapAsync(globals.GPUMapMode.READ);
    const [begin, end] = new BigUint64Array(readable.getMappedRange());
    const us = Number(end - begin) / products / 1000;
    readable.unmap();
    return us;
  };
  for (const until = performance.now() + WARM_MS; ; ) { await run(options.small ? 1 : 4, false); if (performance.now() >= until) break; }
  const times = [];
  for (let i = 0; i < ROUNDS; i++) times.push(await run(options.small ? 1 : 4, true));
  times.sort((a, b) => a - b);
  const us = times[times.length >> 1];
  const worst = v.without ? null : await error(of);
  wh?.destroy();
  if (failure) return { note: failure.split('\n')[0] };
  return { us, best: times[0], tflops: (2 * of.rows * of.cols * of.tokens) / us / 1e6, worst, compiled };
}

const V = (tr, tt, pr, pt, step, stages, split, more = {}) => ({ tr, tt, pr, pt, step, stages, split, ...more });
const name = (v) => `${v.tr} x ${v.tt}, ${v.pr} x ${v.pt} a subgroup, step ${v.step}, ${v.stages} stages, split ${v.split}${v.halves ? `, halves ${v.halves}` : ''}${v.engine ? `, the engine's${v.edit ? `, ${v.edit}` : ''}` : ''}${v.blocks ? ', blocks' : ''}${v.loops ? ', loops' : ''}${v.sparing ? ', sparing' : ''}${v.without ? `, without ${v.without}` : ''}`;
const B = { blocks: true }, S = { blocks: true, sparing: true };
const VARIANTS = options.small
  ? [V(64, 32, 64, 32, 32, 1, 3, { engine: true }), V(64, 32, 64, 32, 32, 2, 1, { engine: true }), V(64, 256, 64, 64, 16, 1, 2, { engine: true }), V(64, 32, 32, 32, 32, 2, 1), V(32, 32, 32, 16, 32, 2, 3, { blocks: true, loops: true }), V(32, 32, 16, 16, 32, 1, 3, S), V(64, 32, 32, 16, 16, 2, 3, { sparing: true }), V(32, 32, 16, 32, 64, 1, 3, { halves: 'each' }), V(32, 64, 32, 32, 32, 2, 1, { halves: 'each' })]
  : [
    ...[1, 2, 3].map((split) => V(128, 128, 64, 32, 32, split === 1 ? 2 : 1, split, { engine: true })), V(128, 64, 64, 32, 32, 1, 3, { engine: true }), V(64, 128, 64, 32, 32, 1, 3, { engine: true }), V(128, 256, 64, 64, 32, 1, 1, { engine: true }), V(128, 256, 64, 64, 16, 1, 3, { engine: true }),
    V(128, 128, 64, 32, 32, 1, 3, { engine: true, edit: 'parts of 4096' }), V(128, 128, 64, 32, 32, 1, 3, { engine: true, edit: 'no parts' }), V(128, 128, 64, 32, 32, 2, 1, { engine: true, edit: 'no parts' }),
    V(128, 128, 64, 32, 32, 1, 3, B), V(128, 128, 64, 32, 32, 1, 3, { blocks: true, loops: true }), V(128, 128, 64, 32, 32, 1, 2, B), V(128, 128, 64, 32, 32, 2, 1, B), V(128, 256, 64, 64, 32, 1, 1, B), V(128, 256, 64, 64, 16, 1, 3, { sparing: true }),
  ];
const SHAPES = options.small ? [['Q4_K', [160, 2560, 70]], ['Q6_K', [96, 256, 33]]]
  : [['Q4_K', [21504, 5376, 512]], ['Q4_K', [5376, 21504, 512]], ['Q4_K', [6144, 1536, 1024]], ['Q6_K', [21504, 5376, 512]], ['Q6_K', [5376, 21504, 512]]];

console.log(`${adapter.info.description || adapter.info.device}; workgroups: ${maxComputeWorkgroupStorageSize} bytes, ${maxComputeInvocationsPerWorkgroup} threads; ${matrices ? 'matrices' : 'imitated matrices'}`);
if (options.check) {
  for (const type of Object.keys(FORMATS)) for (const v of VARIANTS) for (const code of [text(type, v), ...(v.halves ? [halvesText(type, v)] : [])]) {
    if (code === null) { console.log(`${name(v)}: does not divide`); continue; }
    const { messages } = await device.createShaderModule({ code }).getCompilationInfo();
    for (const m of messages) console.log(`${name(v)}: ${m.lineNum}: ${m.message}\n  ${code.split('\n')[m.lineNum - 1]}`);
  }
  process.exit(0);
}
let chosen = VARIANTS.filter((v) => !options.only || name(v).includes(options.only));
let first = true;
for (const [type, shape] of SHAPES) {
  const of = prepare(type, shape);
  const found = [];
  const pipelines = [];
  for (const v of chosen) pipelines.push(await compile(type, v));
  let warm = false;
  for (const [i, v] of chosen.entries()) {
    let r = pipelines[i];
    try {
      if (r.pipeline && !warm && !options.small) for (const until = performance.now() + 500; performance.now() < until; warm = true) await measure(type, of, v, r);
      if (r.pipeline) r = await measure(type, of, v, r);
    } catch (e) { r = { note: String(e.message).split('\n')[0] }; }
    found.push({ v, ...r });
    if (!options.small) console.error(r.note ?? `${r.tflops.toFixed(1)} TFLOP/s`, name(v));
  }
  found.sort((a, b) => (b.tflops ?? 0) - (a.tflops ?? 0));
  console.log(`${type} ${shape.join(' x ')}`);
  for (const { v, us, best, tflops, worst, compiled, note } of found) {
    console.log(note !== undefined ? `  ${name(v)}: ${note}` : `  ${tflops.toFixed(2).padStart(7)} TFLOP/s ${us.toFixed(0).padStart(6)} us (best ${best.toFixed(0).padStart(5)})  ${worst === null ? '           ' : worst.toExponential(1).padStart(8)}  ${name(v)} (${compiled.toFixed(0)} ms)`);
  }
  of.destroy();
  // The other shapes: the best of each split.
  if (first && !options.small) chosen = [1, 2, 3].flatMap((split) => found.filter(({ v, us }) => us && v.split === split && !v.without && !v.edit).slice(0, options.quick ? 3 : 6).map(({ v }) => v));
  first = false;
}
process.exit(0);

// Products of a matrix with a vector as decoding has them, many in one pass, with nothing but npm `webgpu`: the kernels are put
// together here from src/kernels, so that a change of their text can be timed without building anything.
//   node bench/vectors.mjs [--dawn FEATURE,...] [--kernels FOLDER] [--small] [--groups] [--only TEXT]
// For each type and shape the sizes of workgroups, the fastest first: us a product and the rate at which weights are read. Those
// that hold the vector (lib_product_held.wgsl) are named by their passes, teams and rows of a thread.
// --groups: instead, how the time of Q4_K with 5,376 columns grows with the number of workgroups.
// `bezel bench --kernels` times the engine's own, each dispatch alone.
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { create, globals } from 'webgpu';

const { values: options } = parseArgs({
  options: { dawn: { type: 'string' }, kernels: { type: 'string', default: new URL('../src/kernels', import.meta.url).pathname }, small: { type: 'boolean', default: false }, groups: { type: 'boolean', default: false }, only: { type: 'string' } },
});
const BYTES = options.small ? 1 << 22 : 1 << 29; // of weights, noise; matrices rotate within so that no cache holds them
const [ROUNDS, PRODUCTS, WARM_MS] = options.small ? [1, 2, 0] : [5, 40, 10];
const BLOCK_BYTES = { Q4_K: 144, Q5_K: 176, Q6_K: 224, Q8_0: 272, Q4_0: 144, Q5_0: 176, Q2_K: 84, Q3_K: 112 }; // of 256 weights, as they lie on the GPU
// Types whose blocks of 32 lie eight together, see format_blocks.wgsl.
const SMALL = { Q4_0: { FIFTHS: 0, ZERO: 8 }, Q5_0: { FIFTHS: 2, ZERO: 16 } };
const SHAPES = options.small ? [[256, 512]] : [[21504, 5376], [5376, 21504], [24576, 1536], [1536, 6144], [2048, 1536]];
const SIZES = options.small ? [[128, 8, 2]] : [[128, 8, 2], [128, 16, 1], [128, 16, 2], [256, 8, 1], [256, 8, 2], [256, 16, 1], [256, 32, 1], [256, 32, 2]];

const HELD_THREADS = options.small ? [64] : [256, 512];
const GROUPS = [128, 256]; // of workgroups, about

const kernel = (name) => readFileSync(`${options.kernels}/${name}.wgsl`, 'utf8');
const family = (type) => (type in SMALL ? 'blocks' : type.toLowerCase());
const words = (type) => ['lib_small', ...(type in SMALL ? ['lib_codes_plain'] : []), `lib_words_${family(type)}`];
const hasScales = (type) => type === 'Q4_K' || type === 'Q5_K';
const isApart = (type) => type === 'Q3_K' || type === 'Q6_K';
const units = (type) => [...words(type), ...(hasScales(type) ? ['lib_unit_scales'] : []), `lib_unit_${isApart(type) ? 'apart' : family(type)}`];
const integers = (type) => [...words(type), 'lib_digits', `lib_digits_${hasScales(type) ? 'scales' : isApart(type) ? 'apart' : family(type)}`];
// Where 32 neighbours have one scale, neighbouring threads bring their quarters of the vector together.
const paired = (type) => !['Q6_K', 'Q2_K', 'Q3_K'].includes(type);
// As for NVIDIA's.
const scales = (type) => `fn scales_of(word: u32) -> vec2f { return unpack2x16float(word); }
const PAIRED: bool = ${paired(type)};
fn of_other(v: f32) -> f32 { return ${paired(type) ? 'subgroupShuffleXor(v, 1u)' : '0.0'}; }
${type in SMALL ? `const HEADS: u32 = 1u;
const FIFTHS: u32 = ${SMALL[type].FIFTHS}u;
const ZERO: f32 = ${SMALL[type].ZERO}.0;
const SIGNED: bool = false;
fn two_scales(word: u32) -> vec2f { return scales_of(word); }
` : ''}`;
const constants = (values) => 'enable subgroups;\n' + Object.entries(values).map(([name, value]) => `const ${name}: u32 = ${value}u;\n`).join('') + 'alias Word = vec4u;\n';
const end = ['lib_no_bounds', 'lib_gelu', 'lib_vector', 'mat_vec'];

// Sizes with the text they make and the rows of a workgroup.
const shared = (type, [WG, LANES, ROWS], digits) => ({
  name: `${digits ? 'integers' : 'floats'}: ${WG} threads, ${LANES} lanes, ${ROWS} rows`,
  text: constants({ WG, LANES, ROWS }) + scales(type) + ['lib_numbers', 'lib_arena_fours', ...(digits ? [...integers(type), 'lib_chunk_digits'] : [...units(type), 'lib_chunk_floats']), 'lib_product', 'lib_reduce_rows', 'lib_totals', ...end].map(kernel).join(''),
  together: (WG / LANES) * ROWS,
});
function* holding(type, [rows, cols]) {
  const most = new Set();
  for (const threads of HELD_THREADS) {
    for (const PASSES of [1, 2, 3, 4]) {
      const LANES = Math.ceil(cols / 64 / PASSES / 2) * 2;
      const teams = Math.floor(threads / LANES);
      if (teams === 0 || most.has(LANES * teams)) continue;
      most.add(LANES * teams);
      for (const groups of GROUPS) {
        const EACH = Math.ceil(rows / teams / groups / 4) * 4;
        let BATCH = EACH;
        const words = () => 4 * Math.max(12, (BATCH / 4) * teams) * LANES + 8 * LANES + teams * (EACH + 8 * BATCH);
        for (let parts = 2; words() > 12000 && BATCH > 4; parts++) BATCH = Math.ceil(EACH / parts / 4) * 4;
        if (words() > 12000 || EACH > 4 * LANES) continue;
        yield {
          name: `held: ${PASSES} passes, ${teams} teams of ${LANES}, ${EACH} rows`,
          text: constants({ WG: LANES * teams, LANES, PASSES, EACH, BATCH }) + scales(type) + ['lib_numbers', 'lib_arena_fours', ...integers(type), 'lib_product_held', ...end].map(kernel).join(''),
          together: teams * EACH,
        };
      }
    }
  }
}
const names = kernel('mat_vec').match(/struct Params {([^}]*)}/)[1].match(/\w+(?=: [uf]32)/g);

const gpu = create([...(options.dawn ? [`enable-dawn-features=${options.dawn}`] : []), 'disable-dawn-features=timestamp_quantization']);
const adapter = await gpu.requestAdapter({ powerPreference: 'high-performance' });
const { maxBufferSize, maxStorageBufferBindingSize, maxComputeWorkgroupStorageSize, maxComputeInvocationsPerWorkgroup, maxComputeWorkgroupSizeX } = adapter.limits;
const device = await adapter.requestDevice({ requiredFeatures: ['timestamp-query', 'subgroups'], requiredLimits: { maxBufferSize, maxStorageBufferBindingSize, maxComputeWorkgroupStorageSize, maxComputeInvocationsPerWorkgroup, maxComputeWorkgroupSizeX } });
device.onuncapturederror = ({ error }) => {
  console.error(error.message);
  process.exit(1);
};
setInterval(() => {}, 1000); // the GPU alone would not keep Node alive
const { STORAGE, UNIFORM, COPY_DST, COPY_SRC, MAP_READ, QUERY_RESOLVE } = globals.GPUBufferUsage;
const buffer = (size, usage) => device.createBuffer({ size, usage });

const weights = buffer(BYTES, STORAGE | COPY_DST);
const noise = new Uint32Array(1 << 18).map(() => Math.random() * 2 ** 32);
for (let at = 0; at < BYTES; at += noise.byteLength) device.queue.writeBuffer(weights, at, noise);
const arena = buffer(1 << 22, STORAGE | COPY_DST);
device.queue.writeBuffer(arena, 0, new Float32Array(1 << 16).map(() => Math.random() - 0.5));
const queries = device.createQuerySet({ type: 'timestamp', count: 2 });
const [resolved, readable] = [buffer(16, QUERY_RESOLVE | COPY_SRC), buffer(16, MAP_READ | COPY_DST)];

// All of them before the first is timed: a GPU that waits for a compiler lowers its clock.
const compile = (all) => Promise.all(all.map(async (one) => {
  one.pipeline = await device.createComputePipelineAsync({ layout: 'auto', compute: { module: device.createShaderModule({ code: one.text }) } });
}));

async function measure(type, [rows, cols], { pipeline, together }) {
  // Of Q2_K, four blocks have one head of 16 bytes, and so have fewer.
  const rowBytes = type === 'Q2_K' ? Math.ceil(cols / 1024) * 16 + (cols / 256) * 80 : (cols / 256) * BLOCK_BYTES[type];
  const bytes = rowBytes * rows;
  const pitch = Math.ceil(bytes / 256) * 256;
  const params = new Uint32Array(Math.ceil(names.length / 4) * 4);
  for (const [name, value] of Object.entries({ x_stride: cols, out: 1 << 19, out_stride: rows, rows, cols, row_bytes: rowBytes, scale: 0x3f800000 })) params[names.indexOf(name)] = value;
  const uniform = buffer(params.byteLength, UNIFORM | COPY_DST);
  device.queue.writeBuffer(uniform, 0, params);
  const layout = pipeline.getBindGroupLayout(0);
  const groups = Array.from({ length: Math.min(64, Math.floor(BYTES / pitch)) }, (_, i) =>
    device.createBindGroup({ layout, entries: [{ buffer: uniform }, { buffer: arena }, { buffer: weights, offset: i * pitch, size: bytes }].map((resource, binding) => ({ binding, resource })) }));
  const run = (timestampWrites) => {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass({ timestampWrites });
    pass.setPipeline(pipeline);
    for (let i = 0; i < PRODUCTS; i++) {
      pass.setBindGroup(0, groups[i % groups.length]);
      pass.dispatchWorkgroups(Math.ceil(rows / together));
    }
    pass.end();
    if (timestampWrites) {
      encoder.resolveQuerySet(queries, 0, 2, resolved, 0);
      encoder.copyBufferToBuffer(resolved, 0, readable, 0, 16);
    }
    device.queue.submit([encoder.finish()]);
  };
  for (const until = performance.now() + WARM_MS; performance.now() < until; ) run();
  const times = [];
  for (let round = 0; round < ROUNDS; round++) {
    run({ querySet: queries, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 });
    await readable.mapAsync(globals.GPUMapMode.READ);
    const [begin, end] = new BigUint64Array(readable.getMappedRange());
    times.push(Number(end - begin) / PRODUCTS / 1000);
    readable.unmap();
  }
  times.sort((a, b) => a - b);
  return { us: times[times.length >> 1], bytes };
}

console.log(adapter.info.description || adapter.info.device);
if (options.groups) {
  const cols = options.small ? 512 : 5376;
  const all = SIZES.map((size) => shared('Q4_K', size, true));
  await compile(all);
  await measure('Q4_K', [16384, cols], all[0]);
  for (const one of all) {
    console.log(`${one.name}, ${one.together} of them a workgroup`);
    for (const groups of options.small ? [4, 8] : [66, 132, 198, 264, 330, 396, 462, 528, 660, 792, 1056]) {
      const { us, bytes } = await measure('Q4_K', [groups * one.together, cols], one);
      console.log(`  ${String(groups).padStart(5)} workgroups ${us.toFixed(2).padStart(9)} us ${(bytes / us / 1e6).toFixed(3).padStart(7)} TB/s`);
    }
  }
  process.exit(0);
}
const kept = ({ name }) => !options.only || name.includes(options.only);
const variants = (type, shape) => [...SIZES.flatMap((size) => [shared(type, size, false), shared(type, size, true)]), ...holding(type, shape)].filter(kept);
const all = Object.keys(BLOCK_BYTES).flatMap((type) => SHAPES.map((shape) => ({ type, shape, ones: variants(type, shape) })));
await compile(all.flatMap(({ ones }) => ones));
if (!options.small) for (const until = performance.now() + 500; performance.now() < until; ) await measure(all[0].type, all[0].shape, all[0].ones[0]);
for (const { type, shape, ones } of all) {
  const found = [];
  for (const one of ones) found.push({ name: one.name, ...(await measure(type, shape, one)) });
  found.sort((a, b) => a.us - b.us);
  console.log(`${type} ${shape.join(' x ')}`);
  for (const { name, us, bytes } of found) console.log(`  ${us.toFixed(2).padStart(9)} us ${(bytes / us / 1e6).toFixed(3).padStart(7)} TB/s  ${name}`);
}
process.exit(0);

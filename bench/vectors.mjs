// Products of a matrix with a vector as decoding has them, many in one pass, with nothing but npm `webgpu`: the kernels are put
// together here from src/kernels, so that a change of their text can be timed without building anything.
//   node bench/vectors.mjs [--dawn FEATURE,...] [--kernels FOLDER] [--small]
// For each type and shape the sizes of workgroups, the fastest first: us a product and the rate at which weights are read.
// `bezel bench --kernels` times the engine's own, each dispatch alone.
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { create, globals } from 'webgpu';

const { values: options } = parseArgs({
  options: { dawn: { type: 'string' }, kernels: { type: 'string', default: new URL('../src/kernels', import.meta.url).pathname }, small: { type: 'boolean', default: false } },
});
const BYTES = options.small ? 1 << 22 : 1 << 29; // of weights, noise; matrices rotate within so that no cache holds them
const [ROUNDS, PRODUCTS, WARM_MS] = options.small ? [1, 2, 0] : [5, 40, 10];
const BLOCK_BYTES = { Q4_K: 144, Q5_K: 176, Q6_K: 224 }; // of 256 weights, as they lie on the GPU
const SHAPES = options.small ? [[256, 512]] : [[21504, 5376], [5376, 21504], [24576, 1536], [1536, 6144], [2048, 1536]];
const SIZES = options.small ? [[128, 8, 2]] : [[128, 8, 2], [128, 16, 1], [128, 16, 2], [256, 8, 1], [256, 8, 2], [256, 16, 1], [256, 32, 1], [256, 32, 2]];

const kernel = (name) => readFileSync(`${options.kernels}/${name}.wgsl`, 'utf8');
const units = {
  Q4_K: ['lib_small', 'lib_unit_scales', 'lib_unit_q4_k'],
  Q5_K: ['lib_small', 'lib_unit_scales', 'lib_unit_q5_k'],
  Q6_K: ['lib_small', 'lib_unit_q6_k'],
};
const text = (type, [threads, lanes, rows]) =>
  `const WG: u32 = ${threads}u;\nconst LANES: u32 = ${lanes}u;\nconst ROWS: u32 = ${rows}u;\nalias Word = vec4u;\nconst GATE: u32 = 0u;\n` +
  ['lib_numbers', 'lib_arena_fours', ...units[type], 'lib_product', 'lib_reduce_rows', 'lib_totals', 'lib_no_bounds', 'lib_gelu', 'mat_vec'].map(kernel).join('');

const gpu = create([...(options.dawn ? [`enable-dawn-features=${options.dawn}`] : []), 'disable-dawn-features=timestamp_quantization']);
const adapter = await gpu.requestAdapter({ powerPreference: 'high-performance' });
const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits;
const device = await adapter.requestDevice({ requiredFeatures: ['timestamp-query'], requiredLimits: { maxBufferSize, maxStorageBufferBindingSize } });
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

async function measure(type, [rows, cols], size) {
  const rowBytes = (cols / 256) * BLOCK_BYTES[type];
  const bytes = rowBytes * rows;
  const pitch = Math.ceil(bytes / 256) * 256;
  const params = buffer(64, UNIFORM | COPY_DST);
  const out = 1 << 19;
  device.queue.writeBuffer(params, 0, new Uint32Array([0, cols, out, rows, 0, 0, rows, cols, rowBytes, 0x3f800000]));
  const pipeline = device.createComputePipeline({ layout: 'auto', compute: { module: device.createShaderModule({ code: text(type, size) }) } });
  const layout = pipeline.getBindGroupLayout(0);
  const groups = Array.from({ length: Math.min(64, Math.floor(BYTES / pitch)) }, (_, i) =>
    device.createBindGroup({ layout, entries: [{ buffer: params }, { buffer: arena }, { buffer: weights, offset: i * pitch, size: bytes }].map((resource, binding) => ({ binding, resource })) }));
  const [threads, lanes, together] = size;
  const run = (timestampWrites) => {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass({ timestampWrites });
    pass.setPipeline(pipeline);
    for (let i = 0; i < PRODUCTS; i++) {
      pass.setBindGroup(0, groups[i % groups.length]);
      pass.dispatchWorkgroups(Math.ceil(rows / ((threads / lanes) * together)));
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
for (const type of Object.keys(units)) {
  for (const shape of SHAPES) {
    const found = [];
    for (const size of SIZES) found.push({ size, ...(await measure(type, shape, size)) });
    found.sort((a, b) => a.us - b.us);
    console.log(`${type} ${shape.join(' x ')}`);
    for (const { size: [threads, lanes, together], us, bytes } of found) {
      console.log(`  ${us.toFixed(2).padStart(9)} us ${(bytes / us / 1e6).toFixed(3).padStart(7)} TB/s  ${threads} threads, ${lanes} lanes, ${together} rows`);
    }
  }
}
process.exit(0);

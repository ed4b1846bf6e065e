// What a token's dispatches take on the GPU, in the order and among the others that a model has them in; no model is needed.
//   BEZEL_PROGRAMS=FOLDER bezel_tests --gtest_filter=GpuDispatches.OfPublishedShapes    writes the programs
//   node bench/replay.mjs FOLDER/e2b.json FOLDER/e2b-relay.json... [--position 511] [--kinds] [--dawn FEATURE,...] [--small]
// With several programs they are timed in turn: other kernels, or other sizes of them, are other programs. --kinds says for each
// kind of dispatch what the token takes less without it, and more when each is done three times: the first is its cost where it
// stands, the second when its instructions and memory are in the caches (a relay that is repeated also finds its mail there).
// --small is to try the script on a software adapter.
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { parseArgs } from 'node:util';
import { create, globals } from 'webgpu';

const { values: options, positionals: files } = parseArgs({
  allowPositionals: true,
  options: { position: { type: 'string', default: '511' }, kinds: { type: 'boolean', default: false }, dawn: { type: 'string' }, small: { type: 'boolean', default: false } },
});
const [ROUNDS, TURNS, WARM_MS] = options.small ? [1, 1, 0] : [15, 3, 1500];
const MOST_BYTES = options.small ? 1 << 26 : Infinity; // of a buffer
const SLOT = 256;

const gpu = create([...(options.dawn ? [`enable-dawn-features=${options.dawn}`] : []), 'disable-dawn-features=timestamp_quantization']);
const adapter = await gpu.requestAdapter({ powerPreference: 'high-performance' });
const limits = ['maxBufferSize', 'maxStorageBufferBindingSize', 'maxComputeWorkgroupStorageSize', 'maxComputeInvocationsPerWorkgroup', 'maxComputeWorkgroupSizeX', 'maxStorageBuffersPerShaderStage'];
const device = await adapter.requestDevice({
  requiredFeatures: ['timestamp-query', 'subgroups', 'shader-f16'].filter((feature) => adapter.features.has(feature)),
  requiredLimits: Object.fromEntries(limits.map((name) => [name, adapter.limits[name]])),
});
device.onuncapturederror = ({ error }) => {
  console.error(error.message);
  process.exit(1);
};
setInterval(() => {}, 1000); // the GPU alone would not keep Node alive
const { STORAGE, UNIFORM, COPY_DST, COPY_SRC, MAP_READ, QUERY_RESOLVE } = globals.GPUBufferUsage;
const buffer = (size, usage) => device.createBuffer({ size: Math.ceil(size / SLOT) * SLOT, usage });
const queries = device.createQuerySet({ type: 'timestamp', count: 2 });
const [resolved, readable] = [buffer(16, QUERY_RESOLVE | COPY_SRC), buffer(16, MAP_READ | COPY_DST)];

const paramsOf = (text) => text.match(/struct Params {([^}]*)}/)[1].replace(/\/\/.*/g, '').match(/\w+(?=: [uf]32)/g);
const programs = files.map((file) => JSON.parse(readFileSync(file, 'utf8')));
// A buffer has the same number in all programs of one model.
const sizes = new Map();
for (const { bindings } of programs.flat()) for (const [id, offset, bytes] of bindings) sizes.set(id, Math.max(sizes.get(id) ?? 0, offset + bytes));
const noise = new Uint32Array(1 << 20).map(() => (Math.random() * 2 ** 32) & 0x3bff3bff);
const buffers = new Map();
for (const [id, bytes] of sizes) {
  const made = buffer(Math.min(bytes, MOST_BYTES), STORAGE | COPY_DST);
  device.queue.writeBuffer(made, 0, noise, 0, Math.min(noise.length, made.size / 4));
  buffers.set(id, made);
}

// Where a pass looks for the token's position. Its last dispatches may write there, so it is written before each pass.
const positions = new Set();
const pipelines = new Map();
function build(program) {
  const slot = Math.ceil(Math.max(...program.map(({ params }) => params.length)) / SLOT) * SLOT;
  const uniform = buffer(program.length * slot, UNIFORM | COPY_DST);
  return program.map(({ label, text, params, bindings, grid }, i) => {
    const words = new Uint32Array(Uint8Array.from(params).buffer);
    device.queue.writeBuffer(uniform, i * slot, words);
    for (const [j, name] of paramsOf(text).entries()) if (/^(position|positions|last)$/.test(name)) positions.add(`${bindings[0][0]} ${bindings[0][1] + 4 * words[j]}`);
    if (!pipelines.has(text)) pipelines.set(text, device.createComputePipeline({ layout: 'auto', compute: { module: device.createShaderModule({ code: text, label }) } }));
    const pipeline = pipelines.get(text);
    const resources = [{ buffer: uniform, offset: i * slot, size: params.length }, ...bindings.map(([id, offset, size]) => ({ buffer: buffers.get(id), offset, size: Math.min(size, MOST_BYTES - offset) }))];
    return { pipeline, group: device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries: resources.map((resource, binding) => ({ binding, resource })) }), grid, label };
  });
}

function submit(launches, timestampWrites) {
  for (const place of positions) {
    const [id, at] = place.split(' ').map(Number);
    device.queue.writeBuffer(buffers.get(id), at, Float32Array.of(Number(options.position)));
  }
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass({ timestampWrites });
  for (const { pipeline, group, grid } of launches) {
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    pass.dispatchWorkgroups(...grid);
  }
  pass.end();
  if (timestampWrites) {
    encoder.resolveQuerySet(queries, 0, 2, resolved, 0);
    encoder.copyBufferToBuffer(resolved, 0, readable, 0, 16);
  }
  device.queue.submit([encoder.finish()]);
}

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

/** Microseconds, with another pass before each so that caches hold what they do while decoding. */
async function measure(launches) {
  const times = [];
  for (let round = 0; round < ROUNDS; round++) {
    if (!options.small) submit(launches);
    submit(launches, { querySet: queries, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 });
    await readable.mapAsync(globals.GPUMapMode.READ);
    const [begin, end] = new BigUint64Array(readable.getMappedRange(0, 16));
    times.push(Number(end - begin) / 1000);
    readable.unmap();
  }
  return median(times);
}

console.log(adapter.info.description || adapter.info.device);
const SLOWEST_MS = options.small ? Infinity : 100; // of a pass: workgroups of a relay wait in vain, a tenth of a second each
const built = [];
for (const [i, program] of programs.entries()) {
  const launches = build(program);
  let ms;
  for (let pass = 0; pass < 2; pass++) { // the first one compiles
    const begin = performance.now();
    submit(launches);
    await device.queue.onSubmittedWorkDone();
    ms = performance.now() - begin;
  }
  if (ms < SLOWEST_MS) built.push({ title: basename(files[i]), launches });
  else console.log(`${basename(files[i])}: left out, a pass takes ${ms.toFixed(0)} ms`);
}
if (built.length === 0) process.exit(1);
for (const until = performance.now() + WARM_MS; performance.now() < until; ) await measure(built[0].launches);
const found = built.map(() => []);
for (let turn = 0; turn < TURNS; turn++) for (const [i, { launches }] of built.entries()) found[i].push(await measure(launches));
for (const [i, times] of found.entries()) {
  const whole = median(times);
  const { title, launches: all } = built[i];
  console.log(`${title.padEnd(56)} ${(whole / 1000).toFixed(3)} ms, ${all.length} dispatches, ${new Set(all.map((launch) => launch.pipeline)).size} kernels`);
  if (!options.kinds) continue;
  const kindOf = ({ label, grid }) => `${label} ${grid.join('x')}`;
  for (const kind of new Set(all.map(kindOf))) {
    const members = all.filter((launch) => kindOf(launch) === kind);
    const set = new Set(members);
    const without = await measure(all.filter((launch) => !set.has(launch)));
    const again = await measure(all.flatMap((launch) => (set.has(launch) ? [launch, launch, launch] : [launch])));
    const each = (us) => (us / members.length).toFixed(2).padStart(8);
    console.log(`  ${String(members.length).padStart(3)} ${kind.padEnd(44)} ${each(whole - without)} us in its place, ${each((again - whole) / 2)} again`);
  }
}
process.exit(0);

// The wasm engine in Node on a model: loading, memory, speed, and what the replay loop costs JavaScript.
//   node bench/web.mjs MODEL.gguf [-p TOKENS] [-n TOKENS] [-d DEPTH] [--wasm FILE] [--dawn FEATURE,...] [--kv f32|f16|q8] [--relays auto|trial|on|off]
// Prints JSON. Or, without a model, single kernels in all their variants, as a table; with --tiles only those for prompts:
//   node bench/web.mjs --kernels [--tiles] [--dawn allow_unsafe_apis,vulkan_enable_f16_on_nvidia]
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    p: { type: 'string', default: '512' },
    n: { type: 'string', default: '128' },
    d: { type: 'string', default: '0' },
    r: { type: 'string', default: '3' },
    wasm: { type: 'string', default: 'build/web/bezel.wasm' },
    package: { type: 'string', default: new URL('../web/dist', import.meta.url).pathname },
    dawn: { type: 'string' },
    kv: { type: 'string', default: 'f32' },
    relays: { type: 'string', default: 'auto' },
    'per-layer': { type: 'string', default: 'auto' },
    kernels: { type: 'boolean', default: false },
    tiles: { type: 'boolean', default: false },
  },
});
const { EngineModule, fileSource, nodeGpu, nodeWaiting } = await import(`${options.package}/node.js`);

// Rounded to 65 us, timestamps would tell nothing about kernels.
const gpu = await nodeGpu([...(options.dawn ? [`enable-dawn-features=${options.dawn}`] : []), 'disable-dawn-features=timestamp_quantization']);
const module = await EngineModule.create({ wasm: readFileSync(options.wasm), gpu, waiting: nodeWaiting });
const { device, info } = await module.call('open_device', {});
if (options.kernels) {
  const { rates } = await module.call('bench_kernels', { device, tiles: options.tiles });
  for (const r of rates) {
    const size = `${r.type.padEnd(5)} ${r.rows} x ${r.cols} x ${r.tokens}`.padEnd(26);
    const before = r.preparation > 0 ? ` after ${r.preparation.toFixed(4)} ms` : '';
    const speed = r.tokens > 4 ? `${(r.operations_per_second / 1e12).toFixed(2)} TFLOP/s` : `${(r.bytes_per_second / 1e12).toFixed(3)} TB/s`;
    console.log(`${size} ${r.variant.padEnd(46)} ${r.milliseconds.toFixed(4).padStart(9)} ms ${speed.padStart(15)}${before}`);
  }
  process.exit(0);
}
const source = fileSource(positionals[0]);
const begin = performance.now();
const model = await module.call('load', {
  parts: [module.addSource(source)],
  device,
  kv: options.kv,
  perLayerTable: options['per-layer'],
  relays: options.relays,
});
const seconds = (performance.now() - begin) / 1000;
const load = { bytes: source.size, seconds, bytes_per_second: source.size / seconds, heap: module.heapBytes };
const settings = { model: model.model, prompt: Number(options.p), generate: Number(options.n), depth: Number(options.d), repetitions: Number(options.r) };
const report = await module.call('bench', settings);
const heap = module.heapBytes;

// Alone, so that every run is one token's.
const { session } = await module.call('open_session', { model: model.model, context: 1024 });
await module.call('generate', { session, prompt: [2], max_tokens: 8, temperature: 0 });
const before = { ...module.replay };
await module.call('generate', { session, prompt: [2], max_tokens: 64, temperature: 0 });
const runs = module.replay.runs - before.runs;
const per_token = (what) => (module.replay[what] - before[what]) / runs;
const replay = { tokens: runs, milliseconds_per_token: per_token('milliseconds'), of_them_submitting: per_token('submitting') };
console.log(JSON.stringify({ device: info, load, heap, gpu_memory: (await module.call('memory', {})).gpu, replay, ...report }, null, 1));
process.exit(0); // the GPU's threads would keep Node alive

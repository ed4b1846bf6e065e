// What must hold wherever the engine runs: in Node, in a browser's worker, on any adapter. No test framework, so
// that the same file runs everywhere: `checks` maps names to functions that throw.
import { mediaChecks } from './media_checks.mjs';
import { BezelError, EngineModule, blobSource, bytesSource, urlSource } from '../dist/index.js';
import { EngineHost } from '../dist/host.js';

// Single precision against expected values in double: rounding in a few hundred operations on logits of 10 to 30.
// Half precision of keys and values adds 2^-11 of each.
const kBound = 2e-3;
const kHalfBound = 2e-2;

export function expect(condition, message) {
  if (!condition) throw new Error(message);
}
function expectEqual(got, expected, what) {
  const [a, b] = [JSON.stringify(got), JSON.stringify(expected)];
  expect(a === b, `${what}: got ${a}, expected ${b}`);
}
async function expectError(promise, kind, pattern) {
  try {
    await promise;
  } catch (error) {
    expect(error instanceof BezelError && error.kind === kind, `expected an error of kind ${kind}, got ${error.kind}: ${error.message}`);
    expect(pattern.test(error.message), `unexpected message: ${error.message}`);
    return;
  }
  throw new Error(`expected an error of kind ${kind}`);
}

function difference(a, b) {
  expectEqual(a.length, b.length, 'number of logits');
  let most = 0;
  for (let i = 0; i < a.length; i++) most = Math.max(most, Number.isFinite(a[i]) ? Math.abs(a[i] - b[i]) : 1e30);
  return most;
}
function argMax(x) {
  let best = 0;
  for (let i = 1; i < x.length; i++) if (x[i] > x[best]) best = i;
  return best;
}
function expectClose(got, expected, bound, what) {
  const most = difference(got, expected);
  expect(most <= bound, `${what}: logits differ by ${most}, more than ${bound}`);
}

function safetensors(bytes) {
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  const type = { F32: Float32Array, I64: BigInt64Array, I32: Int32Array, U32: Uint32Array };
  return (name) => {
    const { dtype, data_offsets: [begin, end] } = header[name];
    return new type[dtype](bytes.slice(8 + length + begin, 8 + length + end).buffer);
  };
}

const someTokens = (count, vocabulary) => Array.from({ length: count }, (_, i) => (i * 29 + 2) % vocabulary);
const vectors = ['tiny-e2b', 'tiny-e4b', 'tiny-31b', 'tiny-26b', 'tiny-26b-split'];
const quantised = ['tiny-e2b-Q4_K_M', 'tiny-26b-Q4_K_M'];

// `host` gives: wasm (compiled), gpu, waiting (or not), read(path) -> bytes, url(path) -> an address that answers ranges, and
// picture(bytes of a PNG) -> what the package takes; `decodes`: files of pictures are decoded here.
class Bench {
  constructor(host) {
    this.host = host;
  }
  async engine(deviceOptions = {}) {
    const module = await EngineModule.create({ wasm: this.host.wasm, gpu: this.host.gpu, waiting: this.host.waiting });
    const { device, info } = await module.call('open_device', deviceOptions);
    return { module, device, info };
  }
  async load(module, name, options = {}) {
    const part = module.addSource(bytesSource(await this.host.read(`tests/data/${name}.gguf`), name));
    return module.call('load', { parts: [part], ...options });
  }
  async logits(module, model, tokens) {
    const { session } = await module.call('open_session', { model, context: 256 });
    const { numbers } = await module.call('feed', { session, tokens, all: true });
    await module.call('close_session', { session });
    return numbers;
  }
}

async function expectVectors(bench, name, deviceOptions) {
  const expected = JSON.parse(new TextDecoder().decode(await bench.host.read('tests/data/tiny-logits.json'))).models[name];
  const { module, device } = await bench.engine(deviceOptions);
  const { model } = await bench.load(module, name, { device });
  const got = await bench.logits(module, model, expected.tokens);
  expectClose(got, expected.logits.flat(), kBound, name);
  const width = expected.logits[0].length;
  expected.logits.forEach((row, i) => expectEqual(argMax(got.subarray(i * width, (i + 1) * width)), argMax(row), `best token at ${i}`));
}

async function expectTransformers(bench, name, deviceOptions) {
  const golden = safetensors(await bench.host.read(`tests/data/${name}.safetensors`));
  const tokens = Array.from(golden('long.ids'), Number);
  const { module, device } = await bench.engine(deviceOptions);
  const { model } = await bench.load(module, name, { device });
  expectClose(await bench.logits(module, model, tokens), golden('transformers.long.logits'), kBound, name);
}

// No extensions, and as little of everything as WebGPU allows.
const small = { f16: false, subgroups: false, subgroupMatrix: false, integerDots: false, timestamps: false, maxBinding: 128 << 20, maxStorageBindings: 8, maxInvocations: 256 };

const mayRelay = (info) => info.integerDots && info.subgroups;
// How many relays a decoded token takes.
async function relaysOf(module, model) {
  const { decode } = await module.call('bench', { model, prompt: 1, generate: 1, repetitions: 1 });
  return decode.kernels.find(({ label }) => label === 'relay')?.dispatches ?? 0;
}

/** A GPU whose compiler refuses kernels with this label. */
const breaking = (gpu, broken) => ({
  requestAdapter: async (options) => {
    const adapter = await gpu.requestAdapter(options);
    const requestDevice = adapter.requestDevice.bind(adapter);
    adapter.requestDevice = async (descriptor) => {
      const device = await requestDevice(descriptor);
      const make = device.createShaderModule.bind(device);
      device.createShaderModule = ({ code, label }) => make({ label, code: label === broken ? `${code} fn broken() { let x: u32 = 1.5; }` : code });
      return device;
    };
    return adapter;
  },
});

export const checks = {
  'the adapter and its limits are told': async (bench) => {
    const { info } = await bench.engine();
    expect(info.name.length > 0 && info.maxBuffer >= 256 << 20 && info.maxStorageBindings >= 8, JSON.stringify(info));
    const less = (await bench.engine(small)).info;
    expect(!less.f16 && !less.subgroups && less.maxBinding === 128 << 20 && less.maxStorageBindings === 8 && less.maxInvocations === 256, JSON.stringify(less));
  },

  ...Object.fromEntries(vectors.map((name) => [`${name}: logits are the expected ones`, (bench) => expectVectors(bench, name)])),
  ...Object.fromEntries(quantised.map((name) => [`${name}: logits are those of transformers`, (bench) => expectTransformers(bench, name)])),
  'tiny-26b on a small adapter': (bench) => expectVectors(bench, 'tiny-26b', small),
  'tiny-e2b-Q4_K_M on a small adapter': (bench) => expectTransformers(bench, 'tiny-e2b-Q4_K_M', small),

  'any batching gives the same': async (bench) => {
    const { module, device } = await bench.engine();
    const cpu = await bench.load(module, 'tiny-e2b');
    const gpu = await bench.load(module, 'tiny-e2b', { device, batch: 32 });
    const tokens = someTokens(50, cpu.vocabulary);
    const expected = await bench.logits(module, cpu.model, tokens);
    for (const step of [1, 7, 50]) {
      const { session } = await module.call('open_session', { model: gpu.model, context: 64 });
      for (let at = 0; at < tokens.length; at += step) {
        const part = tokens.slice(at, at + step);
        const { numbers, position } = await module.call('feed', { session, tokens: part });
        expectClose(numbers, expected.subarray((position - 1) * cpu.vocabulary, position * cpu.vocabulary), kBound, `step ${step} at ${at}`);
      }
    }
  },

  'keys and values in half precision': async (bench) => {
    const { module, device } = await bench.engine();
    const cpu = await bench.load(module, 'tiny-31b', { kv: 'f16' });
    const gpu = await bench.load(module, 'tiny-31b', { device, kv: 'f16' });
    const tokens = someTokens(40, cpu.vocabulary);
    expectClose(await bench.logits(module, gpu.model, tokens), await bench.logits(module, cpu.model, tokens), kHalfBound, 'f16');
  },

  'keys and values in bytes': async (bench) => {
    const { module, device } = await bench.engine();
    const cpu = await bench.load(module, 'tiny-e2b-Q4_K_M', { kv: 'q8' });
    const gpu = await bench.load(module, 'tiny-e2b-Q4_K_M', { device, kv: 'q8' });
    const exact = await bench.load(module, 'tiny-e2b-Q4_K_M', {});
    const tokens = someTokens(40, cpu.vocabulary);
    const [got, expected, unrounded] = [await bench.logits(module, gpu.model, tokens), await bench.logits(module, cpu.model, tokens), await bench.logits(module, exact.model, tokens)];
    // Where both round the same number to another byte, they differ; but by far less than by what bytes change at all.
    const worst = (a, b) => a.reduce((most, v, i) => Math.max(most, Math.abs(v - b[i])), 0);
    expect(worst(got, expected) < worst(unrounded, expected) / 4, `${worst(got, expected)} of ${worst(unrounded, expected)}`);
    await expectError(bench.load(module, 'tiny-e2b-Q4_K_M', { device, kv: 'q4' }), 'invalid', /'kv' must be f32, f16 or q8, not 'q4'/);
    await expectError(bench.load(module, 'tiny-31b', { device, kv: 'q8' }), 'unsupported', /heads of a multiple of 32/);
  },

  'greedy text equals the CPU\'s': async (bench) => {
    const { module, device } = await bench.engine();
    const texts = [];
    for (const options of [{}, { device }]) {
      const { model } = await bench.load(module, 'tiny-e2b-Q4_K_M', options);
      const { tokens } = await module.call('tokenize', { model, text: 'The quick brown fox' });
      const { session } = await module.call('open_session', { model, context: 128 });
      const ids = [];
      let text = '';
      const result = await module.call(
        'generate',
        { session, prompt: [2, ...tokens], max_tokens: 24, temperature: 0, tokenEvents: true },
        { onEvent: (event) => (event.type === 'token' ? ids.push(event.id) : (text += event.text)) },
      );
      expectEqual(result.generatedTokens, ids.length, 'tokens told and counted');
      texts.push({ ids, text });
    }
    expect(texts[0].ids.length === 24, 'nothing was generated');
    expectEqual(texts[1], texts[0], 'GPU against CPU');
  },

  // transformers' answers with the weights before rounding. Stories are a matter of chance and left out.
  'the embedded model answers held-out questions': async (bench) => {
    const questions = JSON.parse(new TextDecoder().decode(await bench.host.read('tests/data/nano/questions.json')));
    const { module, device } = await bench.engine();
    const part = module.addSource(bytesSource(await bench.host.read('models/nano.gguf'), 'nano'));
    const { model } = await module.call('load', { parts: [part], device });
    const { session } = await module.call('open_session', { model, context: 512 });
    // A dozen short ones: a software adapter needs a tenth of a second a token.
    const short = questions.filter(({ ids, given_ids: given, skill }) => given?.length <= 9 && ids.length <= 32 && skill !== 'stories');
    const asked = short.filter((_, i) => i % Math.floor(short.length / 12) === 0).slice(0, 12);
    expectEqual(asked.length, 12, 'questions');
    for (const { skill, ids, given_ids: given } of asked) {
      const tokens = [];
      await module.call(
        'generate',
        { session, prompt: ids, max_tokens: given.length, temperature: 0, tokenEvents: true },
        { onEvent: (event) => event.type === 'token' && tokens.push(event.id) },
      );
      expectEqual(tokens, given, skill);
    }
  },

  'sessions share a model, take turns and give their memory back': async (bench) => {
    const { module, device } = await bench.engine();
    const { model, vocabulary } = await bench.load(module, 'tiny-e2b', { device });
    const cpu = await bench.load(module, 'tiny-e2b');
    const tokens = someTokens(30, vocabulary);
    const expected = (await bench.logits(module, cpu.model, tokens)).subarray(-vocabulary);
    const before = (await module.call('memory', {})).gpu;
    const sessions = await Promise.all([1, 2, 3].map(() => module.call('open_session', { model, context: 64 })));
    // All at once: requests to one model queue up.
    await Promise.all(sessions.flatMap(({ session }) => tokens.map((token) => module.call('feed', { session, tokens: [token] }))));
    for (const { session } of sessions) {
      await module.call('rewind', { session, count: 10 });
      const { numbers } = await module.call('feed', { session, tokens: tokens.slice(10) });
      expectClose(numbers, expected, kBound, 'after rewinding');
      await module.call('close_session', { session });
    }
    expectEqual((await module.call('memory', {})).gpu, before, 'GPU memory');
    await module.call('unload', { model });
    expectEqual((await module.call('memory', {})).gpu, 0, 'GPU memory after unloading');
  },

  'chat completions are streamed, and the conversation is kept': async (bench) => {
    const { module, device } = await bench.engine();
    const { model } = await bench.load(module, 'tiny-e2b-Q4_K_M', { device });
    const request = { model: 'gemma', messages: [{ role: 'user', content: 'hello' }], max_tokens: 6, seed: 4, stream: true };
    const ask = async () => {
      const chunks = [];
      const done = await module.call('complete', { model, context: 256, request }, { onEvent: (event) => chunks.push(event.chunk) });
      expectEqual(chunks.map((chunk) => chunk.choices[0].delta.content ?? '').join(''), done.choices[0].message.content, 'text');
      return done;
    };
    const first = await ask();
    expectEqual(first.usage.completion_tokens, 6, 'tokens');
    const again = await ask();
    expectEqual(again.choices, first.choices, 'the same seed');
    expect(again.usage.prompt_tokens_details.cached_tokens > 0, 'the prompt was computed again');
    await expectError(module.call('complete', { model, request: { ...request, n: 2 } }), 'unsupported', /'n' is 2/);
  },

  'a conversation is saved, and goes on in another engine': async (bench) => {
    const request = { messages: [{ role: 'user', content: 'hello, how are you' }], max_tokens: 2, seed: 4 };
    const start = async () => {
      const { module, device } = await bench.engine();
      const { model } = await bench.load(module, 'tiny-e2b-Q4_K_M', { device });
      return { module, model, complete: () => module.call('complete', { model, context: 128, request }) };
    };
    const first = await start();
    const expected = await first.complete();
    const pieces = [];
    const sink = first.module.addSink({ write: (bytes) => pieces.push(bytes.slice()), close: () => {} });
    const saved = await first.module.call('save_state', { model: first.model, sink });
    const bytes = new Uint8Array(await new Blob(pieces).arrayBuffer());
    expectEqual(bytes.length, saved.bytes, 'bytes');

    const second = await start();
    const restore = (content) => second.module.call('restore_state', { model: second.model, context: 128, part: second.module.addSource(bytesSource(content, 'chat')) });
    const damaged = bytes.slice();
    damaged[damaged.length >> 1] ^= 1;
    await expectError(restore(damaged), 'invalid', /damaged/);
    expectEqual((await restore(bytes)).tokens, saved.tokens, 'tokens');
    const again = await second.complete();
    expectEqual(again.choices, expected.choices, 'the answer');
    expectEqual(again.usage.prompt_tokens_details.cached_tokens, again.usage.prompt_tokens - 1, 'all but the last token was there');
  },

  'the CPU lets go of its thread: it can be stopped': async (bench) => {
    const { module } = await bench.engine();
    const { model } = await bench.load(module, 'tiny-e2b-Q4_K_M');
    const { session } = await module.call('open_session', { model, context: 512 });
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 100);
    const { stopped, generatedTokens } = await module.call('generate', { session, prompt: [2, 5, 6], max_tokens: 500, temperature: 0 }, { signal: stop.signal });
    expect(stopped && generatedTokens < 499, `${generatedTokens} tokens`);
  },

  'a file is read from a Blob and by HTTP ranges': async (bench) => {
    const { module, device } = await bench.engine();
    const bytes = await bench.host.read('tests/data/tiny-e2b.gguf');
    const sources = [bytesSource(bytes), blobSource(new Blob([bytes])), await urlSource(bench.host.url('tests/data/tiny-e2b.gguf'))];
    const rows = [];
    for (const source of sources) {
      const { model, vocabulary } = await module.call('load', { parts: [module.addSource(source)], device });
      rows.push(Array.from(await bench.logits(module, model, someTokens(5, vocabulary))));
    }
    expectEqual(rows[1], rows[0], 'Blob');
    expectEqual(rows[2], rows[0], 'URL');
    await expectError(urlSource(bench.host.url('tests/data/none.gguf')), 'not-found', /none\.gguf does not exist/);
  },

  'broken files and requests give sentences, and the engine stays usable': async (bench) => {
    const { module, device } = await bench.engine();
    const bytes = await bench.host.read('tests/data/tiny-e2b.gguf');
    for (const broken of [bytes.subarray(0, 3), bytes.subarray(0, 1000), new TextEncoder().encode('this is not a model')]) {
      await expectError(module.call('load', { parts: [module.addSource(bytesSource(broken))], device }), 'invalid', /\.$/);
    }
    const failing = { name: 'failing', size: bytes.length, read: async () => { throw new Error('the network is gone'); } };
    await expectError(module.call('load', { parts: [module.addSource(failing)], device }), 'io', /network is gone/);
    const { model, vocabulary } = await bench.load(module, 'tiny-e2b', { device });
    const { session } = await module.call('open_session', { model, context: 4 });
    await expectError(module.call('feed', { session, tokens: [vocabulary] }), 'invalid', /outside the vocabulary/);
    await expectError(module.call('feed', { session, tokens: [-1] }), 'invalid', /'tokens' must be a whole number/);
    await expectError(module.call('feed', { session, tokens: someTokens(5, vocabulary) }), 'invalid', /context/);
    await expectError(module.call('feed', { session: 999, tokens: [1] }), 'not-found', /no session 999/);
    await expectError(module.call('no_such_method', {}), 'invalid', /no method/);
    expectEqual((await module.call('feed', { session, tokens: [1, 2] })).position, 2, 'position');
  },

  'loading and generating can be stopped': async (bench) => {
    const { module, device } = await bench.engine();
    const stop = new AbortController();
    const bytes = await bench.host.read('tests/data/tiny-e2b-Q4_K_M.gguf');
    const load = module.call('load', { parts: [module.addSource(bytesSource(bytes))], device }, { signal: stop.signal, onEvent: () => stop.abort() });
    await expectError(load, 'cancelled', /stopped/);
    expectEqual((await module.call('memory', {})).gpu, 0, 'GPU memory after a stopped load');
    const { model } = await bench.load(module, 'tiny-e2b-Q4_K_M', { device });
    const { session } = await module.call('open_session', { model, context: 128 });
    const halt = new AbortController();
    let seen = 0;
    const result = await module.call(
      'generate',
      { session, prompt: [2, 5, 6], temperature: 0, tokenEvents: true },
      { signal: halt.signal, onEvent: (event) => event.type === 'token' && ++seen === 3 && halt.abort() },
    );
    expect(result.stopped && seen === 3, `stopped after ${seen} tokens`);
    expect((await module.call('feed', { session, tokens: [7] })).numbers.length > 0, 'the session goes on');
  },

  'the per-layer table stays in the file where memory is short': async (bench) => {
    const { module, device } = await bench.engine();
    const onDevice = await bench.load(module, 'tiny-e2b-Q4_K_M', { device, perLayerTable: 'device' });
    const before = (await module.call('memory', {})).gpu;
    const bytes = await bench.host.read('tests/data/tiny-e2b-Q4_K_M.gguf');
    let reads = 0;
    const slow = { name: 'slow', size: bytes.length, read: async (offset, length) => (++reads, bytes.subarray(offset, offset + length)) };
    const fromFile = await module.call('load', { parts: [module.addSource(slow)], device, perLayerTable: 'source' });
    expect((await module.call('memory', {})).gpu < 2 * before, 'the table was uploaded all the same');
    const loaded = reads;
    const tokens = someTokens(20, onDevice.vocabulary);
    expectEqual(
      Array.from(await bench.logits(module, fromFile.model, tokens)),
      Array.from(await bench.logits(module, onDevice.model, tokens)),
      'logits',
    );
    expect(reads > loaded, 'no rows were read');
  },

  'products are measured, whatever is asked for': async (bench) => {
    const { module, device } = await bench.engine();
    const shapes = [{ type: 'Q4_0', rows: 64, cols: 64 }, { type: 'q4_k', rows: 9, cols: 512, tokens: 2 }];
    for (const staged of [undefined, true]) {
      const { kernels } = await module.call('bench_products', { device, shapes, products: 3, repetitions: 1, staged });
      expectEqual(kernels.map(({ type, rows, cols, tokens }) => [type, rows, cols, tokens]), [['Q4_0', 64, 64, 1], ['Q4_K', 9, 512, 2]], 'shapes');
      expect(kernels.every((kernel) => kernel.milliseconds > 0 && kernel.bytes_per_second > 0), JSON.stringify(kernels));
    }
    expectEqual((await module.call('memory', {})).gpu, 0, 'GPU memory afterwards');
    const most = 4294967294;
    const wrong = { type: /no tensor type/, rows: /at least one row/, cols: /whole ones/, tokens: /too many/ };
    for (const [key, value] of Object.entries({ type: 'Q9', rows: 0, cols: 33, tokens: most })) {
      await expectError(module.call('bench_products', { device, shapes: [{ ...shapes[0], [key]: value }] }), 'invalid', wrong[key]);
    }
    await expectError(module.call('bench_products', { device, shapes: [{ type: 'Q4_0', rows: 1 << 20, cols: 1 << 20 }] }), 'invalid', /larger than/);
    await expectError(module.call('bench_products', { device, shapes, products: most }), 'invalid', /from 1 to 1024/);
  },

  'speed is measured': async (bench) => {
    const { module, device, info } = await bench.engine();
    const { model } = await bench.load(module, 'tiny-e2b', { device });
    const report = await module.call('bench', { model, prompt: 16, generate: 4, repetitions: 1 });
    expect(report.decode.tokens_per_second > 0 && report.prefill.tokens_per_second > 0 && report.read_bandwidth > 0, JSON.stringify(report));
    expect(report.decode.kernels.every(({ milliseconds }) => (milliseconds !== null) === info.timestamps), 'times of kernels');
  },

  'kernels are tuned, and answer the same': async (bench) => {
    const { module, device, info } = await bench.engine();
    const { model, vocabulary, tuning: tried } = await bench.load(module, 'tiny-e2b', { device, relays: 'trial' });
    const relays = tried === undefined ? [] : JSON.parse(tried).relays; // a device without what relays need has no trial
    const tokens = someTokens(2, vocabulary);
    const expected = await bench.logits(module, model, tokens);
    const tuned = module.call('tune', { model, software: true, seconds: 0, rounds: 1 });
    if (!info.timestamps) return expectError(tuned, 'unsupported', /no timestamps/);
    const { products, tried: variants, tuning } = await tuned;
    expectEqual(JSON.stringify(JSON.parse(tuning).relays), JSON.stringify(relays), 'what was found before');
    expect(variants === 2 && products.length > 3 && products.every(({ dispatches, rows }) => dispatches > 0 && rows > 0), JSON.stringify(products));
    for (const text of [tuning, '{"key": 7}', 'no JSON']) {
      const again = await bench.load(module, 'tiny-e2b', { device, tuning: text });
      expectClose(await bench.logits(module, again.model, tokens), expected, kBound, text);
    }
  },

  'products in one dispatch give the same': async (bench) => {
    const { module, device, info } = await bench.engine();
    const { model, vocabulary } = await bench.load(module, 'tiny-e2b-Q4_K_M', { device, relays: 'on' });
    expectEqual(await relaysOf(module, model), mayRelay(info) ? 6 : 0, 'layers with one');
    const cpu = await bench.load(module, 'tiny-e2b-Q4_K_M');
    const tokens = someTokens(8, vocabulary);
    const expected = await bench.logits(module, cpu.model, tokens);
    const { session } = await module.call('open_session', { model, context: 64 });
    for (const [i, token] of tokens.entries()) {
      const { numbers } = await module.call('feed', { session, tokens: [token] });
      expectClose(numbers, expected.subarray(i * vocabulary, (i + 1) * vocabulary), kBound, `token ${i}`);
    }
  },

  'what a trial finds is kept, and not tried again': async (bench) => {
    const kept = { text: '', writes: 0, read: async () => kept.text, write: async (text) => void ((kept.text = text), kept.writes++) };
    const host = await EngineHost.create({ wasm: bench.host.wasm, gpu: bench.host.gpu, waiting: bench.host.waiting }, undefined, undefined, kept);
    const { device, info } = await host.call('open_device', {});
    if (!mayRelay(info)) return;
    const load = async (name, relays) => {
      const part = await host.addSource({ kind: 'bytes', bytes: await bench.host.read(`tests/data/${name}.gguf`), name });
      const loaded = await host.call('load', { parts: [part], device, relays });
      expect(!('tuning' in loaded), 'only the host has it');
      return loaded;
    };
    const found = () => JSON.parse(kept.text).relays.map(({ layers, variant }) => `${layers}: ${variant}`);
    await load('tiny-e2b', 'auto');
    expectEqual(kept.writes, 0, 'nothing is tried');
    const { layers } = await load('tiny-e2b', 'trial'); // has no types that could be multiplied so
    expectEqual(found().join(), `${layers}: off`, 'found');
    await load('tiny-e2b-Q4_K_M', 'trial');
    const [first, second] = found();
    expect([first, second].includes(`${layers}: off`) && found().length === 2, `added to it: ${kept.text}`);
    await load('tiny-e2b-Q4_K_M', 'auto');
    expectEqual(kept.writes, 2, 'nothing new');
    const full = { ...kept, text: '', read: () => Promise.reject(new Error('no')), write: () => Promise.reject(new Error('full')) };
    const other = await EngineHost.create({ wasm: bench.host.wasm, gpu: bench.host.gpu, waiting: bench.host.waiting }, undefined, undefined, full);
    const again = await other.call('open_device', {});
    const part = await other.addSource({ kind: 'bytes', bytes: await bench.host.read('tests/data/tiny-e2b.gguf'), name: 'tiny-e2b' });
    expectEqual((await other.call('load', { parts: [part], device: again.device, relays: 'trial' })).layers, layers, 'loaded all the same');
  },

  'a compiler that refuses products in one dispatch gets them one by one': async (bench) => {
    const module = await EngineModule.create({ wasm: bench.host.wasm, gpu: breaking(bench.host.gpu, 'relay'), waiting: bench.host.waiting });
    const { device, info } = await module.call('open_device', {});
    const { model, vocabulary, tuning } = await bench.load(module, 'tiny-e2b-Q4_K_M', { device, relays: 'on' });
    expectEqual(await relaysOf(module, model), 0, 'layers with one');
    if (mayRelay(info)) expectEqual(JSON.parse(tuning).relays[0].variant, 'off', 'what is known from here on');
    const cpu = await bench.load(module, 'tiny-e2b-Q4_K_M');
    const tokens = someTokens(2, vocabulary);
    expectClose(await bench.logits(module, model, tokens), await bench.logits(module, cpu.model, tokens), kBound, 'logits');
  },

  'a kernel that does not compile is told by its name': async (bench) => {
    const module = await EngineModule.create({ wasm: bench.host.wasm, gpu: breaking(bench.host.gpu, 'soft_cap'), waiting: bench.host.waiting });
    const { device } = await module.call('open_device', {});
    const { model } = await bench.load(module, 'tiny-e2b', { device });
    const { session } = await module.call('open_session', { model, context: 64 });
    for (let attempt = 0; attempt < 2; attempt++) {
      // What is wrong with it Dawn tells; Firefox, that it cannot be parsed.
      await expectError(module.call('feed', { session, tokens: [1] }), 'invalid', /^Kernel soft_cap: [^]*(u32|Parsing error)/);
    }
  },

  'too long a context is refused, a shorter one then works': async (bench) => {
    const { module, device } = await bench.engine(small);
    const { model } = await bench.load(module, 'tiny-e2b', { device });
    const before = (await module.call('memory', {})).gpu;
    await expectError(module.call('open_session', { model, context: 100_000_000 }), 'memory', /context of 100000000 tokens/);
    expectEqual((await module.call('memory', {})).gpu, before, 'GPU memory');
    await module.call('open_session', { model, context: 64 });
  },

  'a lost GPU is told, and opened again it goes on': async (bench) => {
    const opened = [];
    const gpu = {
      requestAdapter: async (options) => {
        const adapter = await bench.host.gpu.requestAdapter(options);
        const requestDevice = adapter.requestDevice.bind(adapter);
        adapter.requestDevice = async (descriptor) => {
          opened.push(await requestDevice(descriptor));
          return opened.at(-1);
        };
        return adapter;
      },
    };
    const module = await EngineModule.create({ wasm: bench.host.wasm, gpu, waiting: bench.host.waiting });
    const tokens = someTokens(12, 48);
    let expected;
    for (let round = 0; round < 2; round++) {
      const { device } = await module.call('open_device', {});
      const { model } = await bench.load(module, 'tiny-e2b', { device });
      const { session } = await module.call('open_session', { model, context: 64 });
      const { numbers } = await module.call('feed', { session, tokens });
      expected ??= numbers;
      expectEqual(Array.from(numbers), Array.from(expected), 'logits after opening again');
      opened.at(-1).destroy();
      await opened.at(-1).lost;
      await expectError(module.call('feed', { session, tokens: [1] }), 'device-lost', /Open it again/);
      await module.call('close_session', { session });
      await module.call('unload', { model });
      await module.call('close_device', { device });
    }
  },

  ...mediaChecks,
};

export async function runChecks(host, report, names = Object.keys(checks)) {
  const bench = new Bench(host);
  for (const name of names) {
    const begin = performance.now();
    try {
      await checks[name](bench);
      report({ name, good: true, ms: performance.now() - begin });
    } catch (error) {
      report({ name, good: false, message: `${error}\n${error.stack ?? ''}` });
    }
  }
}

export { Bench };

// What bench/onnx.mjs runs in a page.
import { EngineModule } from '/web/dist/module.js';
import * as ort from '/node_modules/onnxruntime-web/dist/ort.webgpu.min.mjs';

const block = 32;

// Protocol Buffers: a message is an array of fields, a field an array of bytes and Uint8Arrays.
const varint = (value) => (value < 128 ? [value] : [(value % 128) | 128, ...varint(Math.floor(value / 128))]);
const number = (field, value) => [...varint(field * 8), ...varint(value)];
const bytes = (field, value) => [...varint(field * 8 + 2), ...varint(value.length), value];
const text = (field, value) => bytes(field, new TextEncoder().encode(value));
const message = (field, ...parts) => bytes(field, join(parts.flat()));
function join(parts) {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + (part.length ?? 1), 0));
  let at = 0;
  for (const part of parts) {
    if (typeof part === 'number') out[at] = part;
    else out.set(part, at);
    at += part.length ?? 1;
  }
  return out;
}

const [float, uint8] = [1, 2]; // of TensorProto.DataType
const dims = (sizes) => sizes.map((size) => message(1, number(1, size))).flat();
const value = (field, name, sizes) => message(field, text(1, name), message(2, message(1, number(1, float), message(2, dims(sizes)))));
const tensor = (name, type, sizes, data) => message(5, sizes.flatMap((size) => number(1, size)), number(2, type), text(8, name), bytes(9, data));
const attribute = (name, value) => message(5, text(1, name), number(3, value), number(20, 2));

/** A chain of MatMulNBits: the result of one is the vector of the next. */
function makeModel(size, matrices, accuracy) {
  const parts = [];
  matrices.forEach(({ nibbles, scales }, i) => {
    const inputs = [`x${i}`, `w${i}`, `s${i}`].map((name) => text(1, name)).flat();
    const attributes = Object.entries({ K: size, N: size, bits: 4, block_size: block, ...(accuracy && { accuracy_level: accuracy }) });
    parts.push(message(1, inputs, text(2, `x${i + 1}`), text(4, 'MatMulNBits'), attributes.map(([name, value]) => attribute(name, value)).flat(), text(7, 'com.microsoft')));
    parts.push(tensor(`w${i}`, uint8, [size, size / block, block / 2], nibbles));
    parts.push(tensor(`s${i}`, float, [(size * size) / block], new Uint8Array(scales.buffer)));
  });
  const graph = [text(2, 'chain'), value(11, 'x0', [1, size]), value(12, `x${matrices.length}`, [1, size])];
  const opset = (domain, version) => message(8, text(1, domain), number(2, version));
  return join([number(1, 8), opset('', 17), opset('com.microsoft', 1), message(7, graph.flat(), parts.flat())].flat());
}

/** Random, of such a size that products neither grow nor vanish along a chain. */
function makeMatrix(size) {
  const nibbles = new Uint8Array((size * size) / 2);
  for (let at = 0; at < nibbles.length; at += 65536) crypto.getRandomValues(nibbles.subarray(at, at + 65536));
  const deviation = Math.sqrt(21.5); // of whole numbers from -8 to 7
  const scales = Float32Array.from({ length: (size * size) / block }, () => (Math.random() < 0.5 ? -1 : 1) / deviation / Math.sqrt(size));
  return { nibbles, scales };
}

function plainProduct({ nibbles, scales }, x) {
  return x.map((_, row) => {
    let sum = 0;
    for (let c = 0; c < x.length; c++) {
      const at = row * x.length + c;
      sum += scales[Math.floor(at / block)] * (((nibbles[at >> 1] >> (4 * (at & 1))) & 15) - 8) * x[c];
    }
    return sum;
  });
}

async function openChain(size, matrices, accuracy) {
  const session = await ort.InferenceSession.create(makeModel(size, matrices, accuracy), {
    executionProviders: ['webgpu'],
    extra: { session: { disable_cpu_ep_fallback: '1' } }, // an error rather than a product on the CPU
  });
  return {
    run: async (x) => (await session.run({ x0: new ort.Tensor('float32', x, [1, size]) }))[`x${matrices.length}`].data,
    close: () => session.release(),
  };
}

/** The largest difference from plain products, as a share of the largest element. */
async function check(accuracy) {
  const size = 256;
  const matrices = [makeMatrix(size), makeMatrix(size)];
  const x = Float32Array.from({ length: size }, () => Math.random() - 0.5);
  const chain = await openChain(size, matrices, accuracy);
  const got = await chain.run(x);
  await chain.close();
  const want = matrices.reduce((x, matrix) => plainProduct(matrix, x), Float64Array.from(x));
  return Math.max(...got.map((value, i) => Math.abs(value - want[i]))) / Math.max(...want.map(Math.abs));
}

export async function run(shapes, rounds) {
  ort.env.wasm.wasmPaths = '/node_modules/onnxruntime-web/dist/';
  ort.env.wasm.numThreads = 1;
  const accuracies = { MatMulNBits: 0, 'MatMulNBits, 8-bit vector': 4 };
  const checks = [];
  for (const [name, accuracy] of Object.entries(accuracies)) {
    const error = await check(accuracy);
    if (!(error < (accuracy ? 0.03 : 1e-5))) throw new Error(`${name} is wrong by ${error}.`);
    checks.push({ name, error });
  }
  const module = await EngineModule.create({ wasm: fetch('/build/web/bezel.wasm'), gpu: navigator.gpu });
  const { device, info } = await module.call('open_device', {});
  // `units` is what a real GPU gets.
  const ours = { 'bezel Q4_0': { type: 'Q4_0' }, 'bezel Q4_K': { type: 'Q4_K' }, 'bezel Q4_K, units': { type: 'Q4_K', units: true } };
  const rows = [];
  for (const { size, products } of shapes) {
    const x = new Float32Array(size).fill(1);
    const matrices = Array.from({ length: products }, () => makeMatrix(size));
    const contestants = {};
    const chains = [];
    for (const [name, accuracy] of Object.entries(accuracies)) {
      const chain = await openChain(size, matrices, accuracy);
      await chain.run(x); // compiles kernels; bezel too runs once before it measures
      chains.push(chain);
      contestants[name] = async () => {
        const begin = performance.now();
        await chain.run(x);
        return (performance.now() - begin) / products;
      };
    }
    for (const [name, { type, ...how }] of Object.entries(ours)) {
      const asked = { device, shapes: [{ type, rows: size, cols: size }], products, repetitions: 1, ...how };
      contestants[name] = async () => (await module.call('bench_products', asked)).kernels[0].milliseconds;
    }
    const times = Object.fromEntries(Object.keys(contestants).map((name) => [name, []]));
    for (let round = 0; round < rounds; round++) {
      for (const [name, milliseconds] of Object.entries(contestants)) times[name].push(await milliseconds());
    }
    for (const chain of chains) await chain.close();
    rows.push({ size, products, times });
    console.debug(`${size} x ${size}: done`);
  }
  return { device: info, checks, contestants: [...Object.keys(accuracies), ...Object.keys(ours)], rows };
}

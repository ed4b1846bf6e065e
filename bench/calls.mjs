// What each WebGPU call of a token costs the thread that makes it, in microseconds, for a pass of so many dispatches:
//   node bench/calls.mjs [--dispatches 437] [--chromium] [--dawn FEATURE,...]
// In Node the driver's part is in `submit`; in a browser another process does it, and calls only write down what was called.
import { parseArgs } from 'node:util';

const { values: options } = parseArgs({ options: { dispatches: { type: 'string', default: '437' }, chromium: { type: 'boolean', default: false }, dawn: { type: 'string' } } });

/** Runs in Node or in a page: names nothing outside itself but `gpu`. */
async function measure(gpu, wait, dispatches) {
  const [kernels, rounds] = [24, 40];
  const device = await (await gpu.requestAdapter()).requestDevice();
  const buffer = (size, usage) => device.createBuffer({ size, usage });
  const [params, arena] = [buffer(256 * dispatches, 64 | 8), buffer(1 << 20, 128 | 4)];
  const weights = Array.from({ length: 200 }, () => buffer(4096, 128));
  const words = new Uint32Array(64);
  // As kernels are: parameters, what is written, two matrices. Each writes what the last one wrote, and so waits for it.
  const pipelines = Array.from({ length: kernels }, (_, k) =>
    device.createComputePipeline({
      layout: 'auto',
      compute: {
        entryPoint: 'main',
        module: device.createShaderModule({
          code: `@group(0) @binding(0) var<uniform> p: vec4u;
            @group(0) @binding(1) var<storage, read_write> arena: array<f32>;
            @group(0) @binding(2) var<storage, read> a: array<f32>;
            @group(0) @binding(3) var<storage, read> b: array<f32>;
            @compute @workgroup_size(1) fn main() { arena[p.x] = ${k}.0 + a[0] + b[0]; }`,
        }),
      },
    }),
  );
  const groups = Array.from({ length: dispatches }, (_, i) => {
    const bound = [{ buffer: params, offset: 256 * i, size: 16 }, { buffer: arena }, { buffer: weights[i % 200] }, { buffer: weights[(i + 7) % 200] }];
    const entries = bound.map((resource, binding) => ({ binding, resource }));
    return device.createBindGroup({ layout: pipelines[i % kernels].getBindGroupLayout(0), entries });
  });
  const staging = buffer(64, 1 | 8);
  const each = (call) => {
    for (let i = 0; i < dispatches; i++) call(i);
  };
  const times = {};
  let last = 0;
  const lap = (name, calls = 1) => {
    const now = performance.now();
    (times[name] ??= []).push((1000 * (now - last)) / calls);
    last = performance.now();
  };
  for (let round = 0; round < rounds; round++) {
    last = performance.now();
    device.queue.writeBuffer(params, 0, words);
    lap('writeBuffer');
    let encoder = device.createCommandEncoder();
    lap('createCommandEncoder');
    let pass = encoder.beginComputePass();
    lap('beginComputePass');
    // One kind at a time, only to be timed: this pass is not submitted.
    each((i) => pass.setPipeline(pipelines[i % kernels]));
    lap('setPipeline', dispatches);
    each((i) => pass.setBindGroup(0, groups[i]));
    lap('setBindGroup', dispatches);
    pass.setBindGroup(0, groups[0]);
    pass.setPipeline(pipelines[0]);
    last = performance.now();
    each(() => pass.dispatchWorkgroups(1, 1, 1));
    lap('dispatchWorkgroups(x, y, z)', dispatches);
    each(() => pass.dispatchWorkgroups(1));
    lap('dispatchWorkgroups(x)', dispatches);
    pass.end();
    encoder.finish();
    const token = performance.now();
    last = token;
    encoder = device.createCommandEncoder();
    pass = encoder.beginComputePass();
    each((i) => {
      pass.setPipeline(pipelines[i % kernels]);
      pass.setBindGroup(0, groups[i]);
      pass.dispatchWorkgroups(1);
    });
    lap('the three, in turn', dispatches);
    pass.end();
    encoder.copyBufferToBuffer(arena, 0, staging, 0, 64);
    last = performance.now();
    const commands = encoder.finish();
    lap('finish');
    device.queue.submit([commands]);
    lap('submit');
    const mapped = staging.mapAsync(1);
    lap('mapAsync');
    last = token;
    lap('a token');
    await wait(mapped);
    staging.getMappedRange();
    staging.unmap();
    const begin = performance.now();
    encoder = device.createCommandEncoder();
    encoder.copyBufferToBuffer(arena, 0, staging, 0, 64);
    device.queue.submit([encoder.finish()]);
    await wait(staging.mapAsync(1));
    last = begin;
    lap('a copy, until it is mapped');
    staging.unmap();
  }
  const some = (values, share) => values.sort((a, b) => a - b)[Math.floor(values.length * share)];
  return Object.entries(times).map(([name, values]) => [name, some(values, 0.1), some(values, 0.5)]);
}

async function inChromium() {
  const { default: puppeteer } = await import('puppeteer-core');
  const { startServer } = await import('../web/test/server.mjs');
  const isolated = { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' }; // for a finer clock
  const handle = (request, response) => request.url === '/' && !!response.writeHead(200, { 'Content-Type': 'text/html', ...isolated }).end();
  const server = await startServer({ handle });
  const args = ['--no-sandbox', '--enable-unsafe-webgpu', ...(options.dawn ? [`--enable-dawn-features=${options.dawn}`] : [])];
  const browser = await puppeteer.launch({ headless: true, executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args });
  const page = await browser.newPage();
  await page.goto(`${server.address}/`);
  const times = await page.evaluate(`(${measure})(navigator.gpu, (done) => done, ${Number(options.dispatches)})`);
  await browser.close();
  return times;
}

async function inNode() {
  const { nodeGpu, nodeWaiting } = await import('../web/dist/node.js');
  return measure(await nodeGpu(options.dawn ? [`enable-dawn-features=${options.dawn}`] : []), nodeWaiting, Number(options.dispatches));
}

console.log('us'.padEnd(28), 'a tenth'.padStart(9), 'median'.padStart(9)); // a tenth of the rounds took less
for (const [name, tenth, median] of await (options.chromium ? inChromium() : inNode())) {
  console.log(name.padEnd(28), tenth.toFixed(2).padStart(9), median.toFixed(2).padStart(9));
}
process.exit(0); // the GPU's threads would keep Node alive

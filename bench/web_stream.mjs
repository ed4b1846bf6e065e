// A large model through `bezel serve` into the browser's private file system and on to the GPU, in Chromium: how fast,
// and how much memory WebAssembly and JavaScript take meanwhile.
//
//   build/native/bezel synth e2b -o models/large/e2b.gguf --quant q4_0
//   node bench/web_stream.mjs models/large/e2b.gguf [--json samples.json]
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import puppeteer from 'puppeteer-core';

const [file, option, samplesFile] = process.argv.slice(2);
if (!file || (option && option !== '--json')) throw new Error('usage: web_stream.mjs MODEL.gguf [--json FILE]');
const MiB = 2 ** 20;
const scratch = mkdtempSync(join(tmpdir(), 'bezel-stream-'));
const app = join(scratch, 'app');
mkdirSync(app);
cpSync('web/dist', join(app, 'dist'), { recursive: true });
writeFileSync(join(app, 'index.html'), '<!doctype html><title>stream</title>');

const server = spawn('build/native/bezel', ['serve', '--port', '0', '--app', app, '--models', dirname(file)], { stdio: ['ignore', 'pipe', 'inherit'] });
let url;
for await (const line of createInterface({ input: server.stdout })) {
  url = line.match(/bezel is at (.*)/)[1];
  break;
}
const browser = await puppeteer.launch({
  headless: true,
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  userDataDir: join(scratch, 'profile'),
  protocolTimeout: 1_800_000,
  args: ['--no-sandbox', '--enable-unsafe-webgpu', '--disable-background-networking', '--disable-component-update', '--no-first-run'],
});

/** JavaScript's heap of the page and of its workers, after a collection, and the buffers that belong to it, in bytes. */
async function heaps(page) {
  const sum = { js: 0, buffers: 0 };
  for (const { client } of [{ client: page.session }, ...page.workers()]) {
    await client.send('HeapProfiler.collectGarbage').catch(() => {});
    const usage = await client.send('Runtime.getHeapUsage').catch(() => undefined);
    sum.js += usage?.usedSize ?? 0;
    sum.buffers += usage?.backingStorageSize ?? 0;
  }
  return sum;
}

const samples = [];
async function phase(page, name, work) {
  const begin = performance.now();
  let running = true;
  const sampling = (async () => {
    while (running) {
      const at = performance.now() - begin;
      const [{ js, buffers }, done] = [await heaps(page), await page.evaluate(() => window.done)];
      samples.push({ phase: name, seconds: at / 1000, done, js, buffers });
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  })();
  const result = await work();
  running = false;
  await sampling;
  return { seconds: (performance.now() - begin) / 1000, result };
}

try {
  const page = await browser.newPage();
  page.session = await page.createCDPSession();
  page.on('pageerror', (error) => console.error(error));
  await page.goto(url);
  const name = basename(file, '.gguf');
  await page.evaluate(async () => {
    const { createEngine } = await import('/dist/index.js');
    window.done = 0;
    window.engine = await createEngine({ backend: 'gpu' });
  });
  const size = statSync(file).size;
  const download = await phase(page, 'download', () =>
    page.evaluate(async (name) => {
      const { models } = await (await fetch('/api/models')).json();
      const { url } = models.find((model) => model.name === name);
      const stored = await window.engine.store.download({ url: new URL(url, location.href).href, name }, { onProgress: ({ done }) => (window.done = done) });
      window.key = stored.key;
      return stored.digest;
    }, name),
  );
  const load = await phase(page, 'load', () =>
    page.evaluate(async () => {
      window.done = 0;
      const model = await window.engine.load({ kind: 'stored', key: window.key }, { context: 1024, onProgress: (done) => (window.done = done) });
      window.model = model;
      return { ...(await window.engine.memory()), weightBytes: model.info.weightBytes };
    }),
  );
  const of = (name, key) => samples.filter((sample) => sample.phase === name).map((sample) => sample[key] / MiB);
  const range = (values) => `${Math.min(...values).toFixed(1)} to ${Math.max(...values).toFixed(1)} MiB`;
  console.log(`file          ${(size / 1e9).toFixed(3)} GB, ${basename(file)}`);
  console.log(`into OPFS     ${download.seconds.toFixed(1)} s, ${(size / 1e6 / download.seconds).toFixed(0)} MB/s, SHA-256 ${download.result.slice(0, 12)}…`);
  console.log(`onto the GPU  ${load.seconds.toFixed(1)} s, ${(load.result.weightBytes / 1e6 / load.seconds).toFixed(0)} MB/s, ${(load.result.gpu / 1e9).toFixed(3)} GB there`);
  console.log(`wasm heap     ${(load.result.heap / MiB).toFixed(1)} MiB (it never shrinks, so this is the most)`);
  for (const name of ['download', 'load']) console.log(`JS heap       ${range(of(name, 'js'))}, its buffers ${range(of(name, 'buffers'))} while it ${name === 'load' ? 'loads' : 'downloads'}`);
  if (samplesFile) writeFileSync(samplesFile, JSON.stringify(samples));
  if (load.result.heap >= 64 * MiB) process.exitCode = 1;
} finally {
  await browser.close();
  const ended = new Promise((resolve) => server.once('exit', resolve));
  server.kill('SIGINT');
  await ended;
  rmSync(scratch, { recursive: true, force: true });
}

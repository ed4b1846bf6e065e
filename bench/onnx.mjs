// Products of a matrix of 4 bits with a vector: bezel against onnxruntime-web's MatMulNBits, in one page of Chromium.
//
//   npm install --no-save onnxruntime-web@1.30.0
//   cmake --preset web && cmake --build --preset web --target bezel_wasm && node_modules/.bin/tsc -p web
//   node bench/onnx.mjs [--rounds N] [--json FILE]
//
// Both are timed alike: a run writes a vector, multiplies it with one matrix after another, and reads the last result.
// Rounds of one and of the other take turns, so that what else the machine does meets both. onnx_page.mjs is the page.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import puppeteer from 'puppeteer-core';
import { blankPage, startServer } from '../web/test/server.mjs';

const { values: options } = parseArgs({ options: { rounds: { type: 'string', default: '5' }, json: { type: 'string' } } });
const version = '1.30.0';
const installed = new URL('../node_modules/onnxruntime-web/package.json', import.meta.url);
if (!existsSync(installed) || JSON.parse(readFileSync(installed, 'utf8')).version !== version) {
  console.error(`onnxruntime-web ${version} is not installed: npm install --no-save onnxruntime-web@${version}`);
  process.exit(1);
}
const shapes = [
  { size: 256, products: 16 },
  { size: 2048, products: 4 },
  { size: 4096, products: 2 },
];

const server = await startServer({ handle: blankPage });
const browser = await puppeteer.launch({
  headless: true,
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  protocolTimeout: 1_800_000,
  args: ['--no-sandbox', '--enable-unsafe-webgpu', '--disable-background-networking', '--disable-component-update', '--no-first-run'],
});
try {
  const page = await browser.newPage();
  page.on('pageerror', (error) => console.error(error));
  page.on('console', (message) => {
    if (message.type() !== 'error') console.error(message.text()); // what matters is thrown
  });
  await page.goto(`${server.address}/blank`);
  const run = async (...args) => (await import('/bench/onnx_page.mjs')).run(...args);
  const report = await page.evaluate(run, shapes, Number(options.rounds));
  if (options.json) writeFileSync(options.json, JSON.stringify({ browser: await browser.version(), ...report }, null, 1));
  console.log(`${await browser.version()}, ${report.device.name}${report.device.software ? ', in software' : ''}; onnxruntime-web ${version}`);
  for (const { name, error } of report.checks) console.log(`${name}: at most ${error.toExponential(1)} of the largest element from a plain product`);
  const { contestants } = report;
  const line = (cells) => console.log(`| ${cells.join(' | ')} |`);
  console.log('\nms a product, medians (least to most), and how many times faster than the first\n');
  line(['shape, products', ...contestants]);
  line(['---', ...contestants.map(() => '---')]);
  for (const { size, products, times } of report.rows) {
    const sorted = contestants.map((name) => times[name].toSorted((a, b) => a - b));
    const median = sorted.map((all) => all[Math.floor(all.length / 2)]);
    const short = (value) => value.toPrecision(3);
    const cells = sorted.map((all, i) => `${short(median[i])} (${short(all[0])} to ${short(all.at(-1))}), ${(median[0] / median[i]).toFixed(2)}`);
    line([`${size} x ${size}, ${products}`, ...cells]);
  }
} finally {
  await browser.close();
  server.close();
}

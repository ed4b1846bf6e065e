// The checks in Node, on npm webgpu.
import { readFileSync } from 'node:fs';
import { after, test } from 'node:test';
import { nodeGpu, nodeWaiting } from '../dist/node.js';
import { Bench, checks } from './checks.mjs';
import { readPng } from './png.mjs';
import { startServer } from './server.mjs';

const server = await startServer();
after(() => server.close());
const host = {
  wasm: await WebAssembly.compile(readFileSync('build/web/bezel.wasm')),
  gpu: await nodeGpu(),
  waiting: nodeWaiting,
  read: async (path) => new Uint8Array(readFileSync(path)),
  url: (path) => `${server.address}/${path}`,
  picture: readPng,
  decodes: false,
};
for (const [name, check] of Object.entries(checks)) test(name, () => check(new Bench(host)));

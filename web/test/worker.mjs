// The checks in a Dedicated Worker of a browser.
import { runChecks } from './checks.mjs';

const root = new URL('../..', import.meta.url);
const url = (path) => new URL(path, root).href;
const host = {
  wasm: await WebAssembly.compile(await (await fetch(url('build/web/bezel.wasm'))).arrayBuffer()),
  gpu: navigator.gpu,
  read: async (path) => {
    const response = await fetch(url(path));
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
    return new Uint8Array(await response.arrayBuffer());
  },
  url,
  picture: (bytes) => new Blob([bytes], { type: 'image/png' }),
  decodes: true,
};
await runChecks(host, (result) => postMessage(result), location.hash ? JSON.parse(decodeURIComponent(location.hash.slice(1))) : undefined);
postMessage('done');

// The store in a Dedicated Worker, driven by messages.
import { Sha256, openStore } from '../dist/index.js';

const folder = 'bezel-test';
let store;
const running = new Map();
const sources = new Map();

/** `stopAt`: stops itself when so many bytes are there. */
function jobOptions(name, stopAt) {
  const stop = new AbortController();
  running.set(name, stop);
  const onProgress = (progress) => {
    postMessage({ progress });
    if (progress.done >= (stopAt ?? Infinity)) stop.abort();
  };
  return { signal: stop.signal, onProgress };
}
const root = async () => (await navigator.storage.getDirectory()).getDirectoryHandle(folder);
async function readAll(source) {
  const hash = new Sha256();
  const buffer = new Uint8Array(1 << 20);
  for (let at = 0; at < source.size; at = hash.length) {
    const part = buffer.subarray(0, Math.min(buffer.length, source.size - at));
    hash.update((await source.read(at, part.length, () => part)) ?? part);
  }
  return hash.digest();
}

const methods = {
  open: async (options) => void (store = await openStore({ folder, retryDelay: 20, ...options })),
  list: () => store.list(),
  download: (request, stopAt) => store.download(request, jobOptions(request.url, stopAt)),
  stop: (name) => running.get(name).abort(),
  importBytes: async (url, options, stopAt) => {
    const bytes = await (await fetch(url)).arrayBuffer();
    return store.importFile(new File([bytes], 'from disk.gguf', { lastModified: 1 }), { ...options, ...jobOptions('import', stopAt) });
  },
  /** Opens, reads all and gives its digest; stays open until `close`. */
  read: async (key) => {
    sources.set(key, await store.source(key));
    return readAll(sources.get(key));
  },
  /** Whether reading happens at once. */
  readsNow: async (key) => sources.get(key).read(0, 4, () => new Uint8Array(4)) === undefined,
  close: (key) => sources.get(key).close(),
  verify: (key) => store.verify(key),
  delete: (key) => store.delete(key),
  quota: () => store.quota(),
  isolated: () => crossOriginIsolated,
  /** What a tab leaves that dies just before the last step, and one that dies while it deletes. */
  leaveUnfinished: async (key) => {
    await (await (await root()).getDirectoryHandle(key)).getFileHandle('data.gguf').then((file) => file.move('data.part'));
    const half = await (await root()).getDirectoryHandle('half', { create: true });
    await half.getFileHandle('data.gguf', { create: true });
  },
  folders: async () => {
    const names = [];
    for await (const name of (await root()).keys()) names.push(name);
    return names;
  },
  /** Changes a byte of a ready file behind the store's back. */
  damage: async (key, at) => {
    const file = await (await (await (await root()).getDirectoryHandle(key)).getFileHandle('data.gguf')).createSyncAccessHandle();
    const byte = new Uint8Array(1);
    file.read(byte, { at });
    byte[0] ^= 1;
    file.write(byte, { at });
    file.close();
  },
  hashSpeed: () => {
    const bytes = new Uint8Array(16 << 20);
    let best = 0;
    for (let i = 0; i < 5; i++) {
      const begin = performance.now();
      new Sha256().update(bytes).digest();
      best = Math.max(best, bytes.length / 1e6 / ((performance.now() - begin) / 1e3));
    }
    return best;
  },
};

onmessage = async ({ data: { id, method, args } }) => {
  try {
    postMessage({ id, result: await methods[method](...args) });
  } catch (error) {
    postMessage({ id, error: { kind: error.kind ?? 'unexpected', message: error.message, detail: error.detail, stack: error.stack } });
  }
};

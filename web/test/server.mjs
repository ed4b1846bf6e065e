// A server for tests: files below the repository's root, with ranges and cross-origin isolation.
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const types = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.wasm': 'application/wasm',
  '.webmanifest': 'application/manifest+json',
};

/** For `handle`: an empty page of this origin, at /blank. */
export function blankPage(request, response) {
  if (request.url !== '/blank') return false;
  response.writeHead(200, { 'Content-Type': 'text/html' }).end('<!doctype html><title>blank</title>');
  return true;
}

/** `handle` may answer a request itself; then it returns true. */
export async function startServer({ isolated = true, handle = () => false } = {}) {
  const server = createServer((request, response) => {
    if (handle(request, response)) return;
    const name = decodeURIComponent(new URL(request.url, 'http://x').pathname);
    const path = join(root, normalize(name), name.endsWith('/') ? 'index.html' : '');
    if (!path.startsWith(root) || !existsSync(path) || !statSync(path).isFile()) {
      response.writeHead(404).end();
      return;
    }
    const { size } = statSync(path);
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
    const [begin, end] = range ? [Number(range[1]), Math.min(Number(range[2]), size - 1)] : [0, size - 1];
    response.writeHead(range ? 206 : 200, {
      'Content-Type': types[extname(path)] ?? 'application/octet-stream',
      'Content-Length': end - begin + 1,
      ...(range && { 'Content-Range': `bytes ${begin}-${end}/${size}` }),
      ...(isolated && { 'Cross-Origin-Opener-Policy': 'same-origin', 'Cross-Origin-Embedder-Policy': 'require-corp' }),
    });
    createReadStream(path, { start: begin, end }).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { address: `http://127.0.0.1:${server.address().port}`, close: () => (server.closeAllConnections(), server.close()) };
}

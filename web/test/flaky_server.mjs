// A server of one file of random bytes that misbehaves as it is told, and counts what it sends.
import { createHash } from 'node:crypto';
import { startServer } from './server.mjs';

const pieceBytes = 32 << 10;
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function randomBytes(size, seed) {
  const words = new Uint32Array(Math.ceil(size / 4));
  for (let i = 0; i < words.length; i++) words[i] = seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return Buffer.from(words.buffer, 0, size);
}

/** Behaviour, all of it changeable while it runs. */
const calm = {
  etag: '"one"',
  /** Bytes in a second, for all connections together; 0: as fast as it goes. */
  rate: 0,
  /** Whole files only. */
  ignoreRanges: false,
  /** Cuts connections after so many bytes each, on average. */
  dropAfter: 0,
  /** Answers this many requests with `failWith`. */
  failures: 0,
  failWith: 500,
  /** Sends this byte wrongly. */
  corruptAt: -1,
  /** Sends headers and then nothing, this many times. */
  stalls: 0,
};

export async function startFlakyServer({ size, isolated = true }) {
  const contents = new Map();
  const flaky = {
    ...calm,
    size,
    /** Bytes handed to the network, requests, and the most at a time. */
    sent: 0,
    requests: [],
    open: 0,
    mostOpen: 0,
    content(etag = flaky.etag) {
      const name = `${etag}/${flaky.size}`;
      if (!contents.has(name)) contents.set(name, randomBytes(flaky.size, createHash('sha256').update(etag).digest().readUInt32LE()));
      return contents.get(name);
    },
    digest: (etag) => createHash('sha256').update(flaky.content(etag)).digest('hex'),
    reset() {
      Object.assign(flaky, calm, { size, sent: 0, requests: [], mostOpen: 0 });
    },
  };
  let nextSlot = 0;

  async function serve(request, response) {
    if (flaky.failures > 0) {
      flaky.failures--;
      response.writeHead(flaky.failWith).end();
      return;
    }
    const { etag } = flaky;
    const content = flaky.content(etag);
    const range = flaky.ignoreRanges ? null : /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
    const [begin, end] = range ? [Number(range[1]), Math.min(Number(range[2]) + 1, content.length)] : [0, content.length];
    flaky.requests.push([begin, end]);
    response.writeHead(range ? 206 : 200, {
      'Content-Length': end - begin,
      ...(range && { 'Content-Range': `bytes ${begin}-${end - 1}/${content.length}` }),
      ETag: etag,
      'Access-Control-Allow-Origin': '*', // and nothing that exposes headers
    });
    if (request.method === 'HEAD') {
      response.end();
      return;
    }
    if (flaky.stalls > 0) {
      flaky.stalls--;
      response.flushHeaders();
      return;
    }
    response.setMaxListeners(0);
    flaky.mostOpen = Math.max(flaky.mostOpen, ++flaky.open);
    response.once('close', () => flaky.open--);
    const drop = flaky.dropAfter > 0 ? begin + flaky.dropAfter * 2 * Math.random() : Infinity;
    for (let at = begin; at < end && !response.destroyed; ) {
      const piece = Buffer.from(content.subarray(at, Math.min(at + pieceBytes, end)));
      if (flaky.corruptAt >= at && flaky.corruptAt < at + piece.length) piece[flaky.corruptAt - at] ^= 1;
      if (flaky.rate > 0) {
        nextSlot = Math.max(nextSlot, performance.now()) + (1000 * piece.length) / flaky.rate;
        await pause(nextSlot - performance.now());
      }
      flaky.sent += piece.length;
      at += piece.length;
      if (!response.write(piece) && !response.destroyed) await new Promise((resolve) => response.once('drain', resolve).once('close', resolve));
      if (at > drop) response.destroy();
    }
    response.end();
  }

  const { address, close } = await startServer({
    isolated,
    handle: (request, response) => {
      if (!request.url.startsWith('/flaky/')) return false;
      void serve(request, response);
      return true;
    },
  });
  return Object.assign(flaky, { address, close, url: `${address}/flaky/model.gguf` });
}

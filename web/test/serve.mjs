// The real `bezel serve` with a small Ollama store, and a network in front of it that can be slow or wrong.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';

const bezel = process.env.BEZEL ?? 'build/native/bezel';

/** An Ollama store in `folder` with one model. */
function makeStore(folder, name, model) {
  mkdirSync(join(folder, 'blobs'), { recursive: true });
  const blob = (mediaType, content) => {
    const digest = createHash('sha256').update(content).digest('hex');
    writeFileSync(join(folder, 'blobs', `sha256-${digest}`), content);
    return { mediaType, digest: `sha256:${digest}`, size: content.length };
  };
  const about = { model_format: 'gguf', model_family: 'gemma4', model_type: '5.1B', file_type: 'Q8_0', renderer: 'gemma4-small' };
  const config = blob('application/vnd.docker.container.image.v1+json', Buffer.from(JSON.stringify(about)));
  const layers = [blob('application/vnd.ollama.image.model', model), blob('application/vnd.ollama.image.params', Buffer.from('{"top_k": 64}'))];
  const manifest = join(folder, 'manifests/registry.ollama.ai/library', name.replace(':', '/'));
  mkdirSync(dirname(manifest), { recursive: true });
  writeFileSync(manifest, JSON.stringify({ schemaVersion: 2, config, layers }));
  return layers[0];
}

export async function startServe({ app, name = 'gemma4:tiny', preset = 'tiny', quant = 'q8_0', folder = mkdtempSync(join(tmpdir(), 'bezel-serve-')) }) {
  const file = join(folder, 'model.gguf');
  const made = spawnSync(bezel, ['synth', preset, '-o', file, '--quant', quant], { encoding: 'utf8' });
  if (made.status !== 0) throw new Error(made.stderr);
  const store = join(folder, 'store');
  const { digest, size } = makeStore(store, name, readFileSync(file));
  rmSync(file);
  const child = spawn(bezel, ['serve', '--port', '0', '--app', app, '--models', 'models'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, OLLAMA_MODELS: store },
  });
  let url;
  for await (const line of createInterface({ input: child.stdout })) {
    url = line.match(/bezel is at (.*)/)[1];
    break;
  }
  return {
    url,
    digest,
    size,
    async close() {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGINT');
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}

/** Hands everything on to `target`. `network.rate`: bytes in a second for model files; `corruptAt`: a byte of them that arrives wrong. */
export async function startNetwork(target) {
  const network = { rate: 0, corruptAt: -1, /** of model files, beginnings and ends */ asked: [] };
  let nextSlot = 0;
  async function passModel(from, response) {
    const [, begin, end] = /bytes (\d+)-(\d+)/.exec(from.headers['content-range']);
    network.asked.push([Number(begin), Number(end) + 1]);
    let at = Number(begin);
    for await (const chunk of from) {
      for (let offset = 0; offset < chunk.length; offset += 32 << 10) {
        if (response.destroyed) return;
        const piece = Buffer.from(chunk.subarray(offset, offset + (32 << 10)));
        if (network.corruptAt >= at && network.corruptAt < at + piece.length) piece[network.corruptAt - at] ^= 1;
        if (network.rate > 0) {
          nextSlot = Math.max(nextSlot, performance.now()) + (1000 * piece.length) / network.rate;
          await new Promise((resolve) => setTimeout(resolve, nextSlot - performance.now()));
        }
        at += piece.length;
        response.write(piece);
      }
    }
    response.end();
  }
  const { host, port, hostname } = new URL(target);
  const server = createServer((request, response) => {
    const { origin: _, referer: __, ...headers } = request.headers;
    const out = httpRequest({ hostname, port, method: request.method, path: request.url, headers: { ...headers, host } }, (from) => {
      response.writeHead(from.statusCode, from.headers);
      if (!request.url.endsWith('/blob') || from.statusCode !== 206) from.pipe(response);
      else passModel(from, response).catch(() => response.destroy());
    });
    out.on('error', () => response.destroy());
    response.on('close', () => out.destroy());
    request.pipe(out);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return Object.assign(network, {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () => (server.closeAllConnections(), server.close()),
  });
}

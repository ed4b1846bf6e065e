// What the package remembers of pictures and recordings, with an engine that only counts; and WAV files.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BezelError, Model, readWav, writeWav } from '../dist/index.js';

const silence = (seconds = 1, rate = 16000) => ({ samples: new Float32Array(seconds * rate), rate, channels: 1 });
const pixels = (shade, side = 4) => ({ data: new Uint8Array(3 * side * side).fill(shade), width: side, height: side });
const image = (shade, options = {}) => ({ type: 'image', image: pixels(shade), ...options });

/** Answers with how often it was asked to encode. `lost`: how many answers lose the GPU first. */
function countingModel({ tokens = 64, lost = 0 } = {}) {
  const log = [];
  let next = 0;
  const port = {
    async addSource(spec, give) {
      assert.equal(give, true);
      structuredClone(spec.bytes, { transfer: [spec.bytes.buffer] }); // as on its way to a worker
      return { source: ++next, size: spec.bytes.length, name: spec.name };
    },
    async call(method, args, { signal, onEvent } = {}) {
      log.push([method, args]);
      if (signal?.aborted) throw new BezelError('cancelled', 'stopped');
      if (method === 'see' || method === 'hear') {
        onEvent({ type: 'progress', done: 1, total: 2 });
        return { media: ++next, tokens };
      }
      if (method === 'complete' && lost-- > 0) throw new BezelError('device-lost', 'gone');
      return { choices: [{ message: { content: '' } }] };
    },
  };
  const load = async () => ({ model: ++next, sees: true, hears: true });
  const model = new Model({ reopenDevice: async () => {} }, port, { model: ++next, sees: true, hears: true }, load, undefined);
  const ask = (...content) => model.chat.completions.create({ messages: [{ role: 'user', content }] });
  const count = (method) => log.filter(([name]) => name === method).length;
  const sent = () => log.findLast(([name]) => name === 'complete')[1].request.messages[0].content;
  return { model, ask, count, sent, log };
}

test('the same content is encoded once, another budget or picture again', async () => {
  const { ask, count, sent } = countingModel();
  await ask(image(1), { type: 'text', text: 'What is this?' });
  assert.deepEqual(sent().map(({ type }) => type), ['image', 'text']);
  assert.equal(typeof sent()[0].media, 'number');
  await ask(image(1), image(1));
  assert.equal(count('see'), 1);
  await ask(image(2), image(1, { token_budget: 280 }), image(1, { detail: 'high' }));
  assert.equal(count('see'), 4);
  await ask({ type: 'audio', audio: silence() }, { type: 'audio', audio: writeWav(silence()) }, { type: 'audio', audio: writeWav(silence()) });
  assert.equal(count('hear'), 2); // samples, and two files with the same bytes
});

test('what the caller gave stays the caller’s', async () => {
  const { ask } = countingModel();
  const [picture, sound] = [pixels(7), silence()];
  await ask({ type: 'image', image: picture }, { type: 'audio', audio: sound });
  assert.equal(picture.data.length, 48);
  assert.equal(sound.samples.length, 16000);
});

test('pixels that change are looked at again', async () => {
  const { ask, count } = countingModel();
  const picture = pixels(7);
  await ask({ type: 'image', image: picture });
  picture.data[0] = 8;
  await ask({ type: 'image', image: picture });
  assert.equal(count('see'), 2);
});

test('the oldest are forgotten, but none that is in use', async () => {
  const { ask, count, log } = countingModel({ tokens: 3000 });
  await ask(image(1));
  await ask(image(2), image(3), image(4)); // 12000 tokens at once
  assert.equal(count('see'), 4);
  assert.deepEqual(log.filter(([name]) => name === 'forget').length, 2);
  await ask(image(4));
  assert.equal(count('see'), 4);
  await ask(image(1));
  assert.equal(count('see'), 5);
});

test('after the GPU was lost everything is encoded again', async () => {
  const { ask, count, log } = countingModel({ lost: 1 });
  await ask(image(1));
  assert.equal(count('see'), 2);
  const models = log.filter(([name]) => name === 'see').map(([, { model }]) => model);
  assert.notEqual(models[0], models[1]);
});

test('frames of a video have whole seconds, and a fixed budget', async () => {
  const { ask, sent, log } = countingModel();
  const frames = [0.2, 1.7].map((seconds, i) => ({ image: pixels(i), seconds }));
  await ask({ type: 'video', video: { frames } });
  assert.deepEqual(sent()[0].frames.map(({ seconds }) => seconds), [0, 1]);
  assert.ok(log.filter(([name]) => name === 'see').every(([, { budget }]) => budget === 70));
});

test('addresses are read by the caller, and only those it wrote', async () => {
  const { ask } = countingModel();
  await assert.rejects(ask({ type: 'image_url', image_url: { url: 'http://127.0.0.1:1/none.png' } }), { kind: 'io' });
  // Node has no decoder of pictures: the file was read, and the sentence says what to do.
  await assert.rejects(ask({ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }), { kind: 'unsupported', message: /Give pixels/ });
});

test('parts that hold nothing are refused', async () => {
  const { ask } = countingModel();
  for (const type of ['image', 'audio', 'video', 'image_url', 'input_audio']) {
    await assert.rejects(ask({ type }), { kind: 'invalid' }, type);
    await assert.rejects(ask({ type, [type]: 7 }), { kind: 'invalid' }, type);
  }
});

test('WAV files of every width are read', () => {
  const samples = Float32Array.from([0, 0.5, -0.5, 0.25]);
  const written = { 8: (v, at, x) => v.setUint8(at, 128 + 128 * x), 16: (v, at, x) => v.setInt16(at, 32768 * x, true), 24: (v, at, x) => (v.setInt16(at + 1, 32768 * x, true), v.setUint8(at, 0)), 32: (v, at, x) => v.setInt32(at, 2 ** 31 * x, true) };
  const file = (format, bits, write, extensible = false) => {
    const head = extensible ? 40 : 16;
    const view = new DataView(new ArrayBuffer(28 + head + (samples.length * bits) / 8));
    const put = (at, name) => [...name].forEach((letter, i) => view.setUint8(at + i, letter.charCodeAt(0)));
    put(0, 'RIFF');
    put(8, 'WAVEfmt ');
    view.setUint32(16, head, true);
    view.setUint16(20, extensible ? 0xfffe : format, true);
    view.setUint16(22, 2, true);
    view.setUint32(24, 8000, true);
    view.setUint16(34, bits, true);
    if (extensible) view.setUint16(44, format, true);
    put(20 + head, 'data');
    view.setUint32(24 + head, 0xffffffff, true); // streamed: longer than the file
    samples.forEach((x, i) => write(view, 28 + head + (i * bits) / 8, x));
    return new Uint8Array(view.buffer);
  };
  for (const [bits, write] of Object.entries(written)) {
    for (const extensible of [false, true]) assert.deepEqual(readWav(file(1, Number(bits), write, extensible)), { samples, rate: 8000, channels: 2 }, `${bits} bits`);
  }
  assert.deepEqual(readWav(file(3, 32, (v, at, x) => v.setFloat32(at, x, true))).samples, samples);
  assert.equal(readWav(file(2, 16, written[16])), undefined); // ADPCM is left to the browser
});

test('damaged WAV files are refused', async () => {
  const good = new Uint8Array(await writeWav(silence(0.01)).arrayBuffer());
  for (let length = 12; length < 44; length += 3) assert.throws(() => readWav(good.slice(0, length)), { kind: 'invalid' }, `${length} bytes`);
  assert.deepEqual(readWav(good).samples.length, 160);
  const silent = good.slice();
  new DataView(silent.buffer).setUint16(22, 0, true);
  assert.throws(() => readWav(silent), /0 channels/);
});

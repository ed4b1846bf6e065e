// bezel.wasm through its C interface, as a host would use it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

// What a WASI reactor asks of its host at least; nothing here reads files.
function wasi(memory) {
  const view = () => new DataView(memory().buffer);
  const zero = (...at) => at.forEach((p) => view().setUint32(p, 0, true));
  return new Proxy({
    environ_sizes_get: (count, size) => (zero(count, size), 0),
    environ_get: () => 0,
    clock_time_get: (id, precision, out) => (view().setBigUint64(out, 0n, true), 0),
    fd_prestat_get: () => 8,
    proc_exit: (code) => { throw new Error(`exit ${code}`); },
  }, { get: (calls, name) => calls[name] ?? (() => 52) });
}

async function load() {
  let exports;
  const module = await WebAssembly.compile(readFileSync('build/web/bezel.wasm'));
  const instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: wasi(() => exports.memory) });
  exports = instance.exports;
  exports._initialize();
  const heap = () => new Uint8Array(exports.memory.buffer);
  const put = (bytes) => {
    const at = exports.bezel_alloc(bytes.length);
    heap().set(bytes, at);
    return at;
  };
  const message = () => {
    const at = exports.bezel_message();
    return new TextDecoder().decode(heap().slice(at, at + exports.bezel_message_length()));
  };
  const open = (bytes, context = 128) => {
    const at = put(bytes);
    const handle = exports.bezel_open(at, bytes.length, context);
    exports.bezel_free(at);
    return handle;
  };
  return { exports, heap, put, message, open };
}

const model = (name) => readFileSync(`tests/data/${name}`);

test('logits equal the expected ones', async () => {
  const { exports, put, open } = await load();
  const expected = JSON.parse(readFileSync('tests/data/tiny-logits.json')).models['tiny-e2b'];
  const handle = open(model('tiny-e2b.gguf'));
  assert.notEqual(handle, 0);
  const out = exports.bezel_alloc(48 * 4);
  expected.tokens.forEach((token, row) => {
    const ids = put(new Uint8Array(new Uint32Array([token]).buffer));
    assert.equal(exports.bezel_feed(handle, ids, 1, out), 48);
    exports.bezel_free(ids);
    const logits = new Float32Array(exports.memory.buffer, out, 48);
    logits.forEach((value, i) => assert.ok(Math.abs(value - expected.logits[row][i]) < 2e-5));
  });
  exports.bezel_close(handle);
});

test('a text is continued, the same way for the same seed', async () => {
  const { exports, put, message, open } = await load();
  const handle = open(model('tiny-e2b-Q4_K_M.gguf'));
  assert.notEqual(handle, 0, message());
  const text = new TextEncoder().encode('The quick brown fox');
  const at = put(text);
  const answers = [0, 1, 2].map(() => {
    assert.equal(exports.bezel_complete(handle, at, text.length, 12, 1, 7), 12);
    return message();
  });
  assert.ok(answers[0].length > 0);
  assert.equal(answers[1], answers[0]);
  assert.equal(answers[2], answers[0]);
  exports.bezel_close(handle);
});

test('a broken file gives a sentence, and the module stays usable', async () => {
  const { message, open } = await load();
  const bytes = model('tiny-e2b.gguf');
  for (const broken of [bytes.subarray(0, 3), bytes.subarray(0, 1000), Buffer.from('hello, this is not a model')]) {
    assert.equal(open(broken), 0);
    assert.match(message(), /\.$/);
  }
  assert.notEqual(open(bytes), 0);
});

test('the vocabulary is not exceeded', async () => {
  const { exports, put, message, open } = await load();
  const handle = open(model('tiny-e2b.gguf'), 4);
  const ids = put(new Uint8Array(new Uint32Array([48]).buffer));
  assert.equal(exports.bezel_feed(handle, ids, 1, 0), -1);
  assert.equal(message(), 'Token 48 is outside the vocabulary of 48 tokens.');
});

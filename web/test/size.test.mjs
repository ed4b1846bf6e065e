// What a page has to load for the engine: under a megabyte, compressed.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';

const sizeOf = (names) => names.reduce((sum, name) => sum + gzipSync(readFileSync(`web/dist/${name}`), { level: 9 }).length, 0);

test('the package is under a megabyte', (t) => {
  const wasm = sizeOf(['bezel.wasm']);
  const scripts = sizeOf(readdirSync('web/dist').filter((name) => name.endsWith('.js')));
  t.diagnostic(`gzipped: bezel.wasm ${wasm} bytes, JavaScript ${scripts} bytes`);
  assert.ok(wasm + scripts < 1e6, `${wasm + scripts} bytes`);
});

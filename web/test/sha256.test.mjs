// The store's parts that need no browser: its hash, its spans, and a journal that survives a crash at any moment.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { Journal, Spans, decodeJournal } from '../dist/journal.js';
import { PartialFile } from '../dist/partial.js';
import { Sha256 } from '../dist/sha256.js';

const reference = (bytes) => createHash('sha256').update(bytes).digest('hex');
/** The same numbers each time. */
function generator(seed) {
  return () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}
function someBytes(length, seed = 1) {
  const words = new Uint32Array(Math.ceil(length / 4));
  for (let i = 0; i < words.length; i++) words[i] = seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return new Uint8Array(words.buffer, 0, length);
}

test('SHA-256 of the standard\'s examples', () => {
  const digest = (text) => new Sha256().update(new TextEncoder().encode(text)).digest();
  assert.equal(digest(''), 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  assert.equal(digest('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  assert.equal(
    digest('abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq'),
    '248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1',
  );
});

test('SHA-256 of every length, however it is cut', () => {
  const bytes = someBytes(70_000);
  const random = generator(7);
  for (let length = 0; length < 300; length++) assert.equal(new Sha256().update(bytes.subarray(0, length)).digest(), reference(bytes.subarray(0, length)));
  for (let round = 0; round < 50; round++) {
    const hash = new Sha256();
    const begin = Math.floor(random() * 64); // also where words are not aligned
    for (let at = begin; at < bytes.length; ) {
      const next = at + Math.floor(random() ** 4 * 70_000);
      hash.update(bytes.subarray(at, next));
      at = Math.min(next, bytes.length);
    }
    assert.equal(hash.digest(), reference(bytes.subarray(begin)));
  }
});

test('SHA-256 goes on from a saved state, and a digest may be asked for on the way', () => {
  const bytes = someBytes(1000);
  const hash = new Sha256().update(bytes.subarray(0, 640));
  assert.equal(hash.digest(), reference(bytes.subarray(0, 640)));
  const state = JSON.parse(JSON.stringify(hash.save()));
  assert.equal(Sha256.resume(state).update(bytes.subarray(640)).digest(), reference(bytes));
  assert.equal(hash.update(bytes.subarray(640)).digest(), reference(bytes));
  assert.throws(() => hash.save(), /1000 bytes/);
  assert.throws(() => Sha256.resume({ length: 63, words: state.words }), /no state/);
});

test('SHA-256 is fast', () => {
  const bytes = new Uint8Array(8 << 20);
  let best = 0;
  for (let i = 0; i < 5; i++) {
    const before = process.cpuUsage().user;
    new Sha256().update(bytes).digest();
    best = Math.max(best, bytes.length / (process.cpuUsage().user - before));
  }
  console.log(`SHA-256: ${best.toFixed(0)} MB/s`);
  assert.ok(best > 60, `${best.toFixed(0)} MB/s`); // far below what it reaches alone: machines that test are busy
});

test('spans: adding, gaps and sums agree with a set of numbers', () => {
  const random = generator(3);
  for (let round = 0; round < 200; round++) {
    const spans = new Spans();
    const set = new Set();
    for (let i = 0; i < 12; i++) {
      const begin = Math.floor(random() * 60);
      const end = begin + Math.floor(random() * 8);
      spans.add(begin, end);
      for (let at = begin; at < end; at++) set.add(at);
      assert.equal(spans.total, set.size);
      const missing = Array.from({ length: 70 }, (_, at) => at).filter((at) => !set.has(at));
      const [begin2, end2] = spans.firstGap(70, 16);
      assert.equal(begin2, missing[0]);
      assert.ok(end2 > begin2 && end2 <= (Math.floor(begin2 / 16) + 1) * 16);
      for (let at = begin2; at < end2; at++) assert.ok(!set.has(at));
      assert.ok(end2 === 70 || end2 % 16 === 0 || set.has(end2));
      for (let k = 1; k < spans.list.length; k++) assert.ok(spans.list[k - 1][1] < spans.list[k][0]);
    }
  }
  assert.equal(new Spans([[0, 10]]).firstGap(10, 4), undefined);
});

class Crash extends Error {}
/** A disk that dies after some operations. Of writes not yet flushed, any part may be on it afterwards. */
class Disk {
  constructor(random) {
    this.random = random;
    this.files = {};
    this.left = Infinity;
  }
  step() {
    if (this.left-- <= 0) throw new Crash();
  }
  open(name) {
    const file = (this.files[name] ??= { bytes: new Uint8Array(), pending: [] });
    const apply = (bytes, { at, data }) => {
      if (at + data.length > bytes.length) {
        const longer = new Uint8Array(at + data.length);
        longer.set(bytes);
        bytes = longer;
      }
      bytes.set(data, at);
      return bytes;
    };
    const current = () => (file.pending.length === 0 ? file.bytes : file.pending.reduce(apply, file.bytes.slice()));
    return {
      read: (into, { at }) => {
        const bytes = current().subarray(at, at + into.length);
        into.set(bytes);
        return bytes.length;
      },
      write: (bytes, { at }) => {
        file.pending.push({ at, data: bytes.slice() });
        this.step();
        return bytes.length;
      },
      truncate: (size) => {
        const bytes = new Uint8Array(size);
        bytes.set(current().subarray(0, size));
        Object.assign(file, { bytes, pending: [] });
        this.step();
      },
      getSize: () => current().length,
      flush: () => {
        this.step();
        Object.assign(file, { bytes: current(), pending: [] });
      },
      close: () => {},
    };
  }
  /** After the crash. */
  restart() {
    for (const file of Object.values(this.files)) {
      for (const { at, data } of file.pending) {
        if (this.random() < 0.5) continue;
        const size = file.bytes.length;
        const part = data.subarray(0, Math.floor(this.random() * (data.length + 1)));
        const bytes = new Uint8Array(Math.max(size, at + part.length));
        bytes.set(file.bytes);
        bytes.set(part, at);
        file.bytes = bytes;
      }
      file.pending = [];
    }
  }
}

function entryOf(size, expected, old) {
  const fresh = { key: 'k', name: 'n', url: 'u', size, version: '', expected, digest: '', spans: [], hashes: [], added: 0, lastUsed: 0 };
  return { ...fresh, ...(old && { spans: old.spans, hashes: old.hashes }) };
}

test('a crash at any moment costs only what was not synced, and the journal never claims what is missing', async () => {
  const random = generator(11);
  const content = someBytes(300_000);
  const expected = reference(content);
  let crashes = 0;
  for (let first = 0; first < 60; first++) {
    const disk = new Disk(random);
    let promised = [];
    for (let session = 0; ; session++) {
      disk.left = session === 0 ? first : 3 + Math.floor(random() * 30);
      try {
        const journal = new Journal(disk.open('journal'));
        const part = new PartialFile(disk.open('data'), journal, entryOf(content.length, expected, journal.entry));
        for (const [begin, end] of promised) {
          assert.ok(part.spans.list.some(([from, to]) => from <= begin && end <= to), 'synced bytes were forgotten');
        }
        for (let gap; (gap = part.spans.firstGap(content.length, 20_000)); ) {
          for (let [at, end] = gap; at < end; at += 7000) part.write(content.subarray(at, Math.min(at + 7000, end)), at);
          part.sync();
          promised = part.spans.list.map((span) => [...span]);
        }
        await part.finish();
        break;
      } catch (error) {
        if (!(error instanceof Crash)) throw error;
        crashes++;
        disk.restart();
        const entry = decodeJournal(disk.files.journal.bytes);
        for (const [begin, end] of entry?.spans ?? []) {
          assert.deepEqual(disk.files.data.bytes.subarray(begin, end), content.subarray(begin, end), 'the journal claims bytes that are missing');
        }
        assert.ok((entry?.digest ?? '') === '' || entry.digest === expected);
      }
    }
    assert.equal(decodeJournal(disk.files.journal.bytes).digest, expected);
    assert.deepEqual(disk.files.data.bytes, content);
  }
  assert.ok(crashes > 100, `${crashes} crashes`);
});

test('bytes damaged on disk are noticed', async () => {
  const content = someBytes(40 << 20);
  const disk = new Disk(generator(1));
  const open = (expected = reference(content)) => {
    const journal = new Journal(disk.open('journal'));
    return new PartialFile(disk.open('data'), journal, entryOf(content.length, expected, journal.entry));
  };
  const part = open();
  part.write(content.subarray(0, 36 << 20), 0);
  part.sync();
  while (part.entry.hashes.length < 2) await new Promise((resolve) => setTimeout(resolve, 10));
  part.sync();
  assert.equal(decodeJournal(disk.files.journal.bytes).hashes.length, 2);
  assert.equal(open().spans.total, 36 << 20);
  const damage = (at) => (disk.files.data.bytes[at] ^= 1);
  damage(20 << 20); // between the last two states: found at once
  assert.equal(open().spans.total, 0);

  const again = open();
  again.write(content, 0);
  again.sync();
  damage(39 << 20); // after it: found at the end
  await assert.rejects(open().finish(), /have the SHA-256 .*, but .* was expected/);
});

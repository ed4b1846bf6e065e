// The model store in a headless browser, against a server that misbehaves.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import puppeteer from 'puppeteer-core';
import { startFlakyServer } from './flaky_server.mjs';

export const MiB = 1 << 20;
export const chunk = MiB / 2;
export const connections = 4;
export const size = 8 * MiB + 12345;
export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export const server = await startFlakyServer({ size });
const profiles = [];
after(() => {
  server.close();
  for (const profile of profiles) rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
});

const launches = {
  chromium: { executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run', '--disable-gpu'] },
  firefox: { browser: 'firefox', executablePath: process.env.FIREFOX ?? '/usr/bin/firefox-esr' },
};
export function launch(name, profile) {
  return puppeteer.launch({ headless: true, ...launches[name], ...(profile && { userDataDir: profile }) });
}
export function newProfile() {
  profiles.push(mkdtempSync(join(tmpdir(), 'bezel-store-')));
  return profiles.at(-1);
}

/** A tab with an open store. Calls reject with errors that have the kind. */
export class Tab {
  static async open(browser, options = {}, address = server.address) {
    const tab = new Tab();
    tab.page = await browser.newPage();
    tab.page.on('pageerror', (error) => console.error(error.message));
    await tab.page.goto(`${address}/web/test/store.html`);
    await tab.call('open', { chunk, connections, ...options });
    return tab;
  }
  async call(method, ...args) {
    const { result, error } = await this.page.evaluate((method, args) => window.call(method, ...args), method, args);
    if (error) throw Object.assign(new Error(error.message), error);
    return result;
  }
  download(more = {}, stopAt) {
    return this.call('download', { url: server.url, name: 'model', ...more }, stopAt);
  }
  progress() {
    return this.page.evaluate('window.progress');
  }
  async close() {
    if (!this.page.isClosed()) await this.page.close();
  }
}
export const fails = (promise, kind, pattern) => assert.rejects(promise, (error) => {
  assert.equal(error.kind, kind, error.stack ?? error.message);
  assert.match(error.message, pattern);
  return true;
});

/** Each test begins with an empty store and a calm server. */
export function suite(name, checks) {
  test(`the store in ${name}`, async (t) => {
    const browser = await launch(name);
    try {
      let tab;
      for (const [title, check] of Object.entries(checks)) {
        await t.test(title, async () => {
          server.reset();
          if (tab === undefined || tab.page.isClosed()) tab = await Tab.open(browser);
          await tab.page.evaluate('window.progress = []');
          for (const { key } of await tab.call('list')) await tab.call('delete', key);
          await check(tab, browser);
        });
      }
    } finally {
      await browser.close();
    }
  });
}

export async function expectReady(tab, model) {
  assert.equal(model.state, 'ready');
  assert.equal(model.size, server.size);
  assert.equal(model.digest, server.digest());
  assert.equal(await tab.call('read', model.key), server.digest());
  await tab.call('close', model.key);
}

/** What depends on a browser's files and locks. */
export const files = {
  'a download arrives in parallel chunks, verified, and is there after a reload': async (tab, browser) => {
    assert.equal(await tab.call('isolated'), true);
    server.rate = 40 * MiB;
    const model = await tab.download();
    await expectReady(tab, model);
    assert.ok(server.mostOpen > 1 && server.mostOpen <= connections, `${server.mostOpen} at a time`);
    assert.equal(server.sent, size);
    assert.equal(server.requests.length, Math.ceil(size / chunk));
    const progress = await tab.progress();
    assert.ok(progress.length > 3 && progress.some((p) => p.bytesPerSecond > MiB && p.secondsLeft > 0), JSON.stringify(progress));
    assert.equal(progress.at(-1).state, 'ready');

    const other = await Tab.open(browser);
    const [listed] = await other.call('list');
    assert.ok(listed.lastUsed >= model.lastUsed && listed.added === model.added);
    assert.deepEqual({ ...listed, lastUsed: 0 }, { ...model, lastUsed: 0 });
    await other.download(); // there already: nothing is fetched
    assert.equal(server.sent, size);
    await other.close();
  },

  'a stopped download goes on without fetching anything again': async (tab, browser) => {
    server.rate = 20 * MiB;
    await fails(tab.download({}, 5 * MiB), 'cancelled', /is kept/);
    const [partial] = await tab.call('list');
    assert.equal(partial.state, 'partial');
    assert.ok(partial.done >= 5 * MiB && partial.done < size, `${partial.done}`);
    await fails(tab.call('read', partial.key), 'not-found', /not complete: \d+ of \d+ bytes/);
    await tab.close();

    const other = await Tab.open(browser);
    server.requests = [];
    const model = await other.download();
    await expectReady(other, model);
    const asked = server.requests.reduce((sum, [begin, end]) => sum + end - begin, 0);
    assert.equal(asked, size - partial.done);
    await other.close();
  },

  'a new version on the server: from the beginning, and told': async (tab) => {
    server.rate = 20 * MiB;
    await fails(tab.download({}, 4 * MiB), 'cancelled', /kept/);
    server.etag = '"two"';
    server.sent = 0;
    await expectReady(tab, await tab.download());
    assert.ok((await tab.progress()).some(({ state, note }) => state === 'restarted' && /has changed/.test(note)));
    assert.ok(server.sent >= size);
  },

  'two tabs: one downloads, the other sees it, waits and takes over': async (tab, browser) => {
    server.rate = 12 * MiB;
    const other = await Tab.open(browser);
    const first = tab.download();
    first.catch(() => {}); // its tab is closed below
    await pause(300);
    const second = other.download();
    await fails(other.call('delete', (await other.call('list'))[0].key), 'busy', /Stop that first/);
    await pause(300);
    const seen = await other.progress();
    assert.equal(seen[0].state, 'waiting');
    assert.ok(seen.some(({ state, done }) => state === 'downloading' && done > 0), JSON.stringify(seen));
    await tab.close();
    const model = await second;
    await expectReady(other, model);
    assert.ok(server.sent <= size + (connections + 1) * chunk + 15 * MiB, `${server.sent} bytes sent`);
    await other.close();
  },

  'several tabs read at once; what is being read cannot be deleted': async (tab, browser) => {
    const { key } = await tab.download();
    const other = await Tab.open(browser);
    assert.equal(await tab.call('read', key), server.digest());
    assert.equal(await other.call('read', key), server.digest());
    assert.equal(await tab.call('readsNow', key), true);
    await tab.call('close', key);
    await fails(tab.call('delete', key), 'busy', /another tab/);
    await other.call('close', key);
    await tab.call('delete', key);
    await fails(other.call('read', key), 'not-found', /no model/);
    await other.close();
  },

  'a file from disk is copied, in several goes if need be': async (tab) => {
    await fails(tab.call('importBytes', server.url, {}, 1), 'cancelled', /kept/);
    const [{ done }] = await tab.call('list');
    assert.ok(done > 0 && done < size, `${done} bytes`);
    const model = await tab.call('importBytes', server.url, {});
    assert.equal(model.name, 'from disk.gguf');
    await expectReady(tab, model);
    await fails(tab.call('importBytes', server.url, { digest: '0'.repeat(64) }), 'invalid', /000 was expected/);
  },

  'verifying finds a byte that changed; deleting gives space back': async (tab) => {
    const before = (await tab.call('quota')).usage;
    const { key } = await tab.download();
    assert.equal((await tab.call('verify', key)).state, 'ready');
    assert.ok((await tab.call('quota')).usage - before >= size, 'usage grew');
    await tab.call('damage', key, 5 * MiB);
    await tab.call('read', key); // so that it cannot be deleted
    await fails(tab.call('verify', key), 'invalid', /was expected/);
    assert.equal((await tab.call('list'))[0].state, 'partial');
    await tab.call('close', key);
    const again = await tab.download();
    await expectReady(tab, again);
    await tab.call('delete', again.key);
    for (let i = 0; i < 20 && (await tab.call('quota')).usage > before + MiB; i++) await pause(100);
    assert.ok((await tab.call('quota')).usage <= before + MiB, 'usage shrank');
  },

  'a tab that died in the last step, or while deleting, leaves nothing behind': async (tab, browser) => {
    const { key } = await tab.download();
    await tab.call('leaveUnfinished', key);
    assert.equal((await tab.call('list'))[0].state, 'partial');
    await fails(tab.call('read', key), 'not-found', /not complete/);
    const other = await Tab.open(browser);
    await expectReady(other, (await other.call('list'))[0]);
    assert.deepEqual(await other.call('folders'), [key]);
    assert.equal(server.sent, size);
    await other.close();
  },
};

/** What is the same in every browser. */
export const network = {
  'a wrong byte never becomes ready, and the next download starts clean': async (tab) => {
    const digest = server.digest();
    server.corruptAt = 3 * MiB;
    await fails(tab.download({ digest }), 'invalid', new RegExp(`its ${size} bytes have the SHA-256 [0-9a-f]{64}, but ${digest} was expected`));
    assert.deepEqual(await tab.call('list'), []);
    server.corruptAt = -1;
    await expectReady(tab, await tab.download({ digest }));
  },

  'the digest in an Ollama blob\'s name is checked': async (tab) => {
    const url = `${server.address}/flaky/v2/library/gemma/blobs/sha256:${server.digest()}`;
    const model = await tab.download({ url });
    assert.equal(model.key, `sha256-${server.digest()}`);
    await fails(tab.download({ url: url.replace(/....$/, '0000') }), 'invalid', /0000 was expected/);
  },

  'without ranges it comes as one stream': async (tab) => {
    server.ignoreRanges = true;
    server.dropAfter = 16 * MiB; // repeated from the beginning where it is cut
    await expectReady(tab, await tab.download());
    assert.ok(server.requests.every(([begin, end]) => begin === 0 && end === size));
    assert.equal(server.mostOpen, 1);
  },

  'cut connections, errors and silence are survived': async (tab, browser) => {
    Object.assign(server, { dropAfter: 600_000, failures: 3, stalls: 1 });
    const other = await Tab.open(browser, { stall: 500 });
    await expectReady(other, await other.download());
    assert.ok((await other.progress()).some(({ state }) => state === 'retrying'));
    assert.ok(server.requests.length > size / chunk);
    await other.close();
  },

  'failing for good keeps what is there; refusals are told at once': async (tab) => {
    server.rate = 20 * MiB;
    await fails(tab.download({}, 4 * MiB), 'cancelled', /kept/);
    const [{ done }] = await tab.call('list');
    Object.assign(server, { failures: 1000, failWith: 503 });
    await fails(tab.download(), 'io', /HTTP 503.*goes on from there/);
    assert.equal((await tab.call('list'))[0].done, done);
    for (const [status, kind, pattern] of [[404, 'not-found', /does not exist \(HTTP 404\)/], [403, 'io', /permission/], [401, 'io', /HTTP 401/]]) {
      Object.assign(server, { failures: 1, failWith: status });
      await fails(tab.download({ key: 'other' }), kind, pattern);
    }
    assert.equal((await tab.call('list')).length, 1);
    server.failures = 0;
    await expectReady(tab, await tab.download());
  },

  'from another origin, which hides its headers': async (tab) => {
    const elsewhere = await startFlakyServer({ size });
    try {
      const model = await tab.download({ url: elsewhere.url });
      assert.equal(await tab.call('read', model.key), elsewhere.digest());
      assert.ok(elsewhere.requests.length > size / chunk);
      await tab.call('close', model.key);
    } finally {
      elsewhere.close();
    }
  },

  'keys and digests are checked': async (tab) => {
    for (const key of ['', '..', 'a/b', '.x', 'ü', 'x'.repeat(129)]) await fails(tab.download({ key }), 'invalid', /cannot be a key/);
    await fails(tab.download({ digest: '123' }), 'invalid', /no SHA-256/);
    const { key } = await tab.download();
    await fails(tab.download({ key, digest: 'sha256:' + '0'.repeat(64) }), 'invalid', /Delete it first/);
  },
};

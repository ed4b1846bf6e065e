// The model store in Chromium.
import assert from 'node:assert/strict';
import { startFlakyServer } from './flaky_server.mjs';
import { MiB, Tab, expectReady, files, network, pause, server, size, suite } from './store_checks.mjs';

const chromiumOnly = {
  'too little space is told before anything is fetched': async (tab) => {
    const session = await tab.page.createCDPSession();
    await session.send('Storage.overrideQuotaForOrigin', { origin: server.address, quotaSize: 3 * MiB });
    await assert.rejects(tab.download(), (error) => {
      assert.equal(error.kind, 'quota', error.stack);
      assert.match(error.message, /not enough space for model: it needs \d+ more bytes, and the browser/);
      assert.equal(error.detail.needed, size);
      assert.ok(error.detail.available >= 0);
      return true;
    });
    assert.ok(server.sent <= 2 * MiB, `${server.sent} bytes sent`); // what fits into the network's buffers
    assert.deepEqual(await tab.call('list'), []);
    await session.send('Storage.overrideQuotaForOrigin', { origin: server.address });
    await expectReady(tab, await tab.download());
  },

  'without cross-origin isolation': async (_tab, browser) => {
    const plain = await startFlakyServer({ size, isolated: false });
    try {
      const other = await Tab.open(browser, {}, plain.address);
      assert.equal(await other.call('isolated'), false);
      await expectReady(other, await other.download({ url: plain.url }));
      await other.close();
    } finally {
      plain.close();
    }
  },

  'offline, it waits for the network': async (tab) => {
    server.rate = 6 * MiB;
    const done = tab.download();
    done.catch(() => {}); // looked at below
    await pause(300);
    await tab.page.setOfflineMode(true);
    await pause(1200); // longer than its retries last
    await tab.page.setOfflineMode(false);
    await expectReady(tab, await done);
    assert.ok((await tab.progress()).some(({ state }) => state === 'offline'));
  },

  'hashing keeps up with a network': async (tab) => {
    const speed = await tab.call('hashSpeed');
    console.log(`SHA-256 in Chromium: ${speed.toFixed(0)} MB/s`);
    assert.ok(speed > 20);
  },
};

suite('chromium', { ...files, ...network, ...chromiumOnly });

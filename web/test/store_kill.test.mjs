// Tabs and browsers that die while they download.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MiB, Tab, chunk, connections, expectReady, launch, newProfile, pause, server } from './store_checks.mjs';

/** Kills a download at random points, in several ways, and finishes it. */
async function killAndFinish(t, name, size, kills) {
  const seed = Number(process.env.SEED ?? Date.now() % 1e6);
  let state = seed;
  const random = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  t.diagnostic(`SEED=${seed}`);
  server.reset();
  Object.assign(server, { size, rate: 25 * MiB });
  const profile = newProfile();
  let browser = await launch(name, profile);
  let done = 0;
  try {
    for (const kill of kills) {
      const tab = await Tab.open(browser);
      const [listed] = await tab.call('list');
      const now = listed?.done ?? 0;
      assert.ok(now >= done, `${now} bytes are left of ${done}`);
      assert.notEqual(listed?.state, 'ready');
      done = now;
      const sentBefore = server.sent;
      const running = tab.download({ digest: server.digest() });
      running.catch(() => {});
      const amount = (random() * 1.5 * size) / kills.length;
      for (const begin = performance.now(); server.sent < sentBefore + amount && performance.now() - begin < 5000; ) await pause(3);
      if (kill === 'browser') {
        browser.process().kill('SIGKILL');
        await new Promise((resolve) => browser.once('disconnected', resolve));
        browser = await launch(name, profile);
      } else if (kill === 'crash') {
        const crashed = new Promise((resolve) => tab.page.once('error', resolve));
        const session = await tab.page.createCDPSession();
        session.send('Page.crash').catch(() => {}); // nobody answers any more
        await crashed;
        await tab.close();
      } else if (kill === 'reload') {
        await tab.page.reload();
        await tab.close();
      } else {
        await tab.close();
      }
    }
    const tab = await Tab.open(browser);
    const model = await tab.download({ digest: server.digest() });
    await expectReady(tab, model);
    assert.equal((await tab.call('verify', model.key)).digest, server.digest());
    // Requests, not bytes sent: those may have died in the network's buffers.
    const again = server.requests.reduce((sum, [begin, end]) => sum + end - begin, 0) - size;
    t.diagnostic(`${kills.length} kills: ${again} of ${size} bytes were asked for twice`);
    assert.ok(again <= kills.length * connections * chunk, `${again} bytes were asked for twice`);
  } finally {
    await browser.close();
  }
}

test('killed at random points in chromium', (t) =>
  killAndFinish(t, 'chromium', 40 * MiB + 777, ['close', 'crash', 'browser', 'close', 'reload', 'crash', 'browser', 'close', 'reload', 'browser']));
test('killed at random points in firefox', (t) => killAndFinish(t, 'firefox', 16 * MiB + 777, ['close', 'reload', 'browser']));

// The checks in headless browsers: Chromium and, as a second implementation of WebGPU, Firefox. CHECKS=pattern runs some.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import puppeteer from 'puppeteer-core';
import { checks } from './checks.mjs';
import { startServer } from './server.mjs';

const browsers = {
  chromium: {
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--enable-unsafe-webgpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'],
  },
  firefox: {
    browser: 'firefox',
    executablePath: process.env.FIREFOX ?? '/usr/bin/firefox-esr',
    extraPrefsFirefox: { 'dom.webgpu.enabled': true, 'dom.webgpu.workers.enabled': true, 'gfx.webgpu.ignore-blocklist': true },
  },
};

const names = Object.keys(checks).filter((name) => new RegExp(process.env.CHECKS ?? '').test(name));
const server = await startServer();
after(() => server.close());

for (const [name, options] of Object.entries(browsers)) {
  test(`in a worker of ${name}`, async (t) => {
    const browser = await puppeteer.launch({ headless: true, protocolTimeout: 1_300_000, ...options });
    try {
      const page = await browser.newPage();
      page.on('pageerror', (error) => console.error(`${name}: ${error.message}`));
      await page.goto(`${server.address}/web/test/page.html#${encodeURIComponent(JSON.stringify(names))}`);
      await page.waitForFunction('window.finished', { timeout: 1_200_000, polling: 500 });
      const results = await page.evaluate('window.results');
      for (const result of results) {
        await t.test(result.name, () => assert.ok(result.good, result.message));
      }
      assert.equal(results.length, names.length, 'every check ran');
    } finally {
      await browser.close();
    }
  });
}

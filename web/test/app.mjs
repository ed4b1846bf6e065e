// What the app's tests and screenshots share: a browser, the app served, and how to use it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import puppeteer from 'puppeteer-core';
import { startServer } from './server.mjs';

export const served = {
  models: [
    { name: 'gemma4:e2b', url: 'blobs/sha256-1', hints: { parameterSize: '5.1B' }, quantization: 'Q4_K_M', size: 3_340_000_000 },
    { name: 'gemma4:31b', url: 'blobs/sha256-2', hints: { parameterSize: '31B' }, quantization: 'Q4_K_M', size: 19_800_000_000 },
  ],
};

export const desktop = { width: 1280, height: 800 };
export const phone = { width: 390, height: 844, isMobile: true, hasTouch: true, deviceScaleFactor: 2 };

export const launch = ({ gpu = true, args = [] } = {}) =>
  puppeteer.launch({
    headless: true,
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', gpu ? '--enable-unsafe-webgpu' : '--disable-features=WebGPU,WebGPUService', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run', ...args],
  });

/** `folder` is a build: build/app-test with the scripted engine, build/app-tiny with the real one. It is served below a sub-path. */
export async function serveApp(folder, options = {}) {
  const handle = (request, response) => {
    if (!request.url.endsWith('/api/models')) return false;
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(served));
    return true;
  };
  const server = await startServer({ handle, ...options });
  return { url: `${server.address}/${folder}/`, close: server.close };
}

/** A page of its own, with storage of its own. */
export async function openApp(browser, url, { viewport = desktop, before, scheme = 'light' } = {}) {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  page.errors = [];
  page.on('pageerror', (error) => page.errors.push(error.message));
  page.on('console', (message) => message.type() === 'error' && page.errors.push(message.text()));
  await page.setViewport(viewport);
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  if (before) await page.evaluateOnNewDocument(before);
  await page.goto(url);
  await page.waitForSelector('#message');
  return page;
}

/** Model and conversations. */
export const untilReady = (page) => page.waitForSelector('main:has(.top .dot.ready) .conversation', { timeout: 120_000 });
export const untilDone = (page) => page.waitForSelector('button[aria-label="Send"]', { timeout: 120_000 });

/** Writes and sends; resolves when the answer has begun. (By the time one looks for the button that stops it, a quick one may be over.) */
export async function say(page, text) {
  const answers = (await page.$$('.turns > .assistant')).length;
  await page.type('#message', text);
  await page.keyboard.press('Enter');
  await page.waitForFunction((before) => document.querySelectorAll('.turns > .assistant').length > before, {}, answers);
}
export async function ask(page, text) {
  await say(page, text);
  await untilDone(page);
}
/** Asks, and stops the answer as soon as it has begun: a GPU in software takes long for all of it. Random weights may also end it at once, without a word. */
export async function askBriefly(page, text) {
  const answers = (await page.$$('.turns > .assistant')).length;
  await say(page, text);
  const begun = (at) => {
    const answer = document.querySelectorAll('.turns > .assistant')[at];
    return answer?.querySelector('.markdown')?.textContent || answer?.querySelector('.message-actions');
  };
  await page.waitForFunction(begun, { timeout: 120_000 }, answers);
  await page.keyboard.press('Escape');
  await untilDone(page);
}
export const textOf = (page, selector) => page.$$eval(selector, (all) => all.map((one) => one.textContent));
export const click = async (page, selector) => (await page.waitForSelector(selector, { visible: true })).click();
/** Resolves when it is open: the address changes first, and the page a little later. */
export async function newChat(page) {
  await click(page, '.new-chat');
  await page.waitForSelector('.welcome');
}

const axe = readFileSync('node_modules/axe-core/axe.min.js', 'utf8');
export async function expectAccessible(page, where) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'] }));
  assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes.map((node) => node.html)]), [], where);
}

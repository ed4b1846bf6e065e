// What people go through with the app: the real engine, the real `bezel serve`, tiny models with random weights. Most of
// it on the CPU, which is much faster than a GPU in software.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ask, askBriefly, click, launch, newChat, openApp, say, textOf, untilDone, untilReady } from './app.mjs';
import { startNetwork, startServe } from './serve.mjs';

const MB = 1e6;
const serve = await startServe({ app: 'build/app-tiny' });
const browser = await launch({ gpu: false });
after(async () => {
  await browser.close();
  await serve.close();
});

const name = 'gemma4:tiny';
const few = () => localStorage.getItem('bezel.settings') ?? localStorage.setItem('bezel.settings', JSON.stringify({ maxTokens: 64, temperature: 0 }));
/** From the next load on. The weights are random: only a greedy answer is sure to be long, and only to some questions. */
const many = (page) => page.evaluate(() => localStorage.setItem('bezel.settings', JSON.stringify({ maxTokens: 16384, temperature: 0 })));
const longQuestion = 'And then?';
const until = (page, check, ...args) => page.waitForFunction(check, { timeout: 30_000, polling: 50 }, ...args);
const answers = (page) => textOf(page, '.turns > .assistant .markdown');
const noFailure = async (page) => assert.deepEqual(await textOf(page, '.failed'), []);
const press = (page, scope, text) =>
  page.evaluate((scope, text) => [...document.querySelectorAll(`${scope} button`)].find((one) => one.textContent.includes(text)).click(), scope, text);
/** Megabytes that a paused download has. */
const pausedAt = async (page) => Number(/Paused at ([\d.]+) MB/.exec(await page.$eval('.job', (job) => job.textContent))?.[1] ?? 0);
const isOnDevice = `.models li:has(button[aria-label="Delete ${name}"]) button[aria-label="Use ${name}"]`;

async function openTab(context, url) {
  const page = await context.newPage();
  page.errors = [];
  page.on('pageerror', (error) => page.errors.push(error.message));
  await page.evaluateOnNewDocument(few);
  await page.goto(url);
  await untilReady(page);
  return page;
}
async function openModels(page) {
  await click(page, '.model-button');
  await page.waitForSelector(`button[aria-label="Will it fit? ${name}"]`);
}
async function beginDownload(page) {
  await openModels(page);
  // Not with the mouse: what is already on its way appears above just now, and moves the button.
  await page.$eval(`button[aria-label="Will it fit? ${name}"]`, (button) => button.click());
  await page.waitForSelector('.verdict');
  await press(page, '.fit', 'Download');
}
const untilMoving = (page) => until(page, () => /[1-9][\d.]* MB of .*\/s/.test(document.querySelector('.job')?.textContent ?? ''));

/** A context of its own, behind a network of its own. */
const story = (title, body) =>
  test(title, async () => {
    const network = await startNetwork(serve.url);
    const context = await browser.createBrowserContext();
    try {
      await body({ network, context, page: await openTab(context, network.url) });
    } finally {
      await context.close();
      network.close();
    }
  });

test('a model of Ollama is used through serve, on the GPU', async () => {
  const fast = await launch();
  const page = await openApp(fast, serve.url, { before: few });
  await untilReady(page);
  await openModels(page);
  await click(page, `button[aria-label="Use ${name}"]`);
  await page.keyboard.press('Escape');
  await until(page, (name) => document.querySelector('.model-name').textContent === name, name);
  await untilReady(page);
  await askBriefly(page, 'Hello');
  await noFailure(page);
  assert.deepEqual(page.errors, []);
  assert.match((await textOf(page, '.notice'))[0], /imitates a graphics card/);
  await fast.close();
});

story('a download is paused and resumed, and the model works without a network', async ({ network, page }) => {
  network.rate = 3 * MB;
  await beginDownload(page);
  await untilMoving(page);
  await click(page, `button[aria-label="Pause ${name}"]`);
  await until(page, () => document.querySelector('.job').textContent.includes('Paused at'));
  const before = await pausedAt(page);
  assert.ok(before > 0 && before < serve.size / MB, `${before} MB`);
  const asked = network.asked.length;
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.equal(network.asked.length, asked, 'a paused download asks for nothing');
  assert.equal(await pausedAt(page), before);
  network.rate = 0;
  await click(page, `button[aria-label="Resume ${name}"]`);
  await page.waitForSelector(isOnDevice);
  const [begin] = network.asked.at(-1);
  assert.ok(begin >= (before - 0.1) * MB, `it went on at byte ${begin}`);

  await click(page, isOnDevice);
  await page.keyboard.press('Escape');
  await until(page, (name) => document.querySelector('.model-name').textContent === name, name);
  await untilReady(page);
  await ask(page, 'Hello');
  await page.evaluate(() => navigator.serviceWorker.ready);
  await until(page, async () => (await navigator.serviceWorker.getRegistration())?.active?.state === 'activated');
  network.close();
  await page.reload();
  await untilReady(page);
  assert.deepEqual(await textOf(page, '.model-name'), [name]);
  await ask(page, 'Again');
  await noFailure(page);
  assert.equal((await answers(page)).length, 2);
});

story('a tab dies within a download, and the next one goes on', async ({ network, context, page }) => {
  network.rate = 3 * MB;
  await beginDownload(page);
  await untilMoving(page);
  await new Promise((resolve) => setTimeout(resolve, 1100)); // what a crash may cost
  const crashed = new Promise((resolve) => page.once('error', resolve));
  (await page.createCDPSession()).send('Page.crash').catch(() => {});
  await crashed;
  await page.close();
  network.rate = 0;

  const next = await openTab(context, network.url);
  await openModels(next);
  await until(next, () => document.querySelector('.job')?.textContent.includes('Paused at'));
  const before = await pausedAt(next);
  assert.ok(before > 0, `${before} MB were left`);
  assert.equal(await next.$(isOnDevice), null, 'what is not whole is not offered');
  await click(next, `button[aria-label="Resume ${name}"]`);
  await next.waitForSelector(isOnDevice);
  assert.ok(network.asked.at(-1)[0] >= (before - 0.1) * MB, 'what was there was not fetched again');
  await click(next, isOnDevice);
  await next.keyboard.press('Escape');
  await untilReady(next);
  await ask(next, 'Hello');
  await noFailure(next);
  const hints = await next.evaluate(() => Object.values(JSON.parse(localStorage.getItem('bezel.hints'))));
  assert.equal(hints[0].renderer, 'gemma4-small', 'what Ollama knows beside the file is kept too');
});

story('a wrong byte is told, and never becomes a model', async ({ network, page }) => {
  network.corruptAt = serve.size >> 1;
  await beginDownload(page);
  await until(page, () => document.querySelector('.job .failed'));
  assert.match((await textOf(page, '.job .failed'))[0], /damaged|SHA-256|digest|checksum/i);
  assert.equal(await page.$(isOnDevice), null);
  network.corruptAt = -1;
  await click(page, `button[aria-label="Resume ${name}"]`);
  await page.waitForSelector(isOnDevice);
});

story('two tabs share a download, and answer at once', async ({ network, context, page }) => {
  network.rate = serve.size / 25; // so slow that the other tab always finds it under way
  const other = await openTab(context, network.url);
  await page.bringToFront();
  await beginDownload(page);
  await untilMoving(page);
  await other.bringToFront();
  await beginDownload(other);
  await until(other, () => document.querySelector('.job')?.textContent.includes('Another tab is at it'));
  network.rate = 0;
  await other.waitForSelector(isOnDevice);
  await page.waitForSelector(isOnDevice);
  const fetched = network.asked.reduce((sum, [begin, end]) => sum + end - begin, 0);
  assert.ok(fetched < 1.5 * serve.size, `${fetched} bytes were asked for, of ${serve.size}`);
  for (const tab of [page, other]) {
    await tab.bringToFront();
    await click(tab, isOnDevice);
    await tab.keyboard.press('Escape');
    await until(tab, (name) => document.querySelector('.model-name').textContent === name, name);
    await untilReady(tab);
    await say(tab, 'Hello');
  }
  for (const tab of [page, other]) {
    await tab.bringToFront();
    await untilDone(tab);
    await noFailure(tab);
  }
});

story('chat, stop, retry, reload and continue', async ({ page }) => {
  await many(page);
  await page.reload();
  await untilReady(page);
  await askBriefly(page, longQuestion);
  const [stopped] = await answers(page);
  assert.match((await textOf(page, '.ending'))[0], /Stopped/);
  await press(page, '.ending', 'Continue');
  await until(page, (length) => document.querySelector('.assistant .markdown').textContent.length > length, stopped.length);
  await page.keyboard.press('Escape');
  await untilDone(page);
  await click(page, 'button[aria-label="Answer again"]');
  await until(page, () => document.querySelector('.versions')?.textContent === '2/2');
  await page.keyboard.press('Escape');
  await untilDone(page);
  await page.reload();
  await untilReady(page);
  await until(page, () => document.querySelector('.versions')?.textContent === '2/2');
  await askBriefly(page, 'Hello');
  await noFailure(page);
  assert.equal((await answers(page)).length, 2);
});

/** Of the last answer: tokens of its prompt, and how many of them were there already. */
const promptOf = async (page) => /after (\d+) of prompt, (\d+) of them/.exec(await page.$$eval('.stats', (all) => all.at(-1).title)).slice(1).map(Number);
const untilKept = (page) =>
  until(page, async () => {
    const folder = await navigator.storage.getDirectory().then((root) => root.getDirectoryHandle('bezel-states')).catch(() => null);
    let bytes = 0;
    if (folder) for await (const handle of folder.values()) bytes = (await handle.getFile()).size;
    const same = bytes > 0 && bytes === window.keptBytes;
    window.keptBytes = bytes;
    return same;
  });

// The embedded model, as what it writes is read back as the same tokens.
story('a conversation goes on after a reload without being read again', async ({ page }) => {
  await openModels(page);
  await click(page, 'button[aria-label="Use nano"]');
  await page.keyboard.press('Escape');
  await until(page, () => document.querySelector('.model-name').textContent === 'nano');
  await untilReady(page);
  await ask(page, 'What is 3 plus 4?');
  await ask(page, 'Tell me a story.');
  await ask(page, 'What is 5 plus 4?');
  const [before] = await promptOf(page);
  assert.ok(before > 64);
  await untilKept(page);
  await page.reload();
  await untilReady(page);
  await ask(page, 'What is 2 plus 2?');
  await noFailure(page);
  const [prompt, known] = await promptOf(page);
  assert.ok(prompt > before && prompt - known < 24, `${prompt - known} of ${prompt} tokens were read again`);

  // And without what was kept all of it is read, and the answer comes all the same.
  await untilKept(page);
  await page.reload();
  await page.evaluate(() => navigator.storage.getDirectory().then((root) => root.removeEntry('bezel-states', { recursive: true })));
  await untilReady(page);
  await ask(page, 'What is 1 plus 2?');
  await noFailure(page);
  assert.equal((await promptOf(page))[1], 0);
});

test('without WebGPU the embedded model answers, the app says why it is slow, and stopping works', async () => {
  const page = await openApp(browser, serve.url, { before: few });
  await untilReady(page);
  const [notice] = await textOf(page, '.notice');
  assert.match(notice, /Slow here: the processor computes.*WebGPU.*switch on “hardware acceleration”/s);
  await ask(page, 'Hello');
  await noFailure(page);
  await many(page);
  await page.reload();
  await untilReady(page);
  await newChat(page);
  await say(page, longQuestion);
  await until(page, () => document.querySelector('.turns > li:last-child .markdown')?.textContent.length > 0);
  await page.keyboard.press('Escape');
  await untilDone(page);
  assert.match((await textOf(page, '.ending')).at(-1), /Stopped/);
  await page.browserContext().close();
});

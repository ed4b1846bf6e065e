// The app in Chromium: what people do with it, with a scripted engine; and the real engine with a tiny model.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ask, askBriefly, click, expectAccessible, launch, newChat, openApp, phone, say, serveApp, textOf, untilDone, untilReady } from './app.mjs';

const app = await serveApp('build/app-test');
const browser = await launch();
after(async () => {
  await browser.close();
  app.close();
});

/** Runs with a page of its own, and fails if the page reported an error. */
const withApp = (name, options, body) =>
  test(name, async () => {
    const page = await openApp(browser, options.url ?? app.url, options);
    await untilReady(page);
    await body(page);
    assert.deepEqual(page.errors, []);
    await page.browserContext().close();
  });

const answers = (page) => textOf(page, '.turns > .assistant .markdown');
const questions = (page) => textOf(page, '.bubble');
const version = (page, role) => textOf(page, `.turns > .${role} .versions > span`);
const button = (page, scope, text) =>
  page.evaluate(
    (scope, text) => [...document.querySelectorAll(`${scope} button`)].find((one) => one.textContent.includes(text)).click(),
    scope,
    text,
  );
const until = (page, check, ...args) => page.waitForFunction(check, { timeout: 30_000, polling: 50 }, ...args);

withApp('opens into a chat, answers, and streams', {}, async (page) => {
  assert.equal(await page.$eval('#message', (field) => document.activeElement === field), true);
  await say(page, 'A long one');
  await until(page, () => document.querySelector('.assistant .markdown')?.textContent.includes('word3'));
  const early = (await answers(page))[0].length;
  await until(page, (length) => document.querySelector('.assistant .markdown').textContent.length > length, early);
  await untilDone(page);
  assert.match((await answers(page))[0], /^word0 .* word399$/);
  assert.match((await textOf(page, '.stats'))[0], /tok\/s/);
});

withApp('a turn has several lines with Shift+Enter', {}, async (page) => {
  await page.type('#message', 'one');
  await page.keyboard.down('Shift');
  await page.keyboard.press('Enter');
  await page.keyboard.up('Shift');
  await ask(page, 'two');
  assert.deepEqual(await questions(page), ['one\ntwo']);
});

withApp('Esc stops, and Continue goes on', {}, async (page) => {
  await say(page, 'A long one');
  await until(page, () => document.querySelector('.assistant .markdown')?.textContent.includes('word3'));
  await page.keyboard.press('Escape');
  await untilDone(page);
  const [stopped] = await answers(page);
  assert.doesNotMatch(stopped, /word399/);
  assert.match((await textOf(page, '.ending'))[0], /Stopped/);
  await button(page, '.ending', 'Continue');
  await until(page, () => document.querySelector('.assistant .markdown').textContent.endsWith('and the rest of it.'));
  assert.ok((await answers(page))[0].startsWith(stopped.trim()));
});

withApp('an answer without a word says so, and can be tried again', {}, async (page) => {
  await ask(page, 'Be silent');
  assert.deepEqual(await textOf(page, '.ending > span'), ['The model ended its answer without a word.']);
  await button(page, '.ending', 'Try again');
  await until(page, () => document.querySelector('.versions')?.textContent === '2/2');
  await untilDone(page);
});

/** Until whoever asks gives up. */
const silentServer = () => {
  const real = window.fetch;
  window.fetch = (url, init) =>
    String(url).endsWith('api/models') ? new Promise((_, reject) => init?.signal?.addEventListener('abort', () => reject(init.signal.reason))) : real(url, init);
};
withApp('models on the device are listed even if the server does not answer', { before: silentServer }, async (page) => {
  await click(page, '.model-button');
  await page.waitForSelector('.quota');
  assert.match((await textOf(page, '.models strong'))[0], /Nano/);
});

withApp('retrying and editing make branches', {}, async (page) => {
  await ask(page, 'first');
  await ask(page, 'second');
  await click(page, '.turns > li:last-child button[aria-label="Answer again"]');
  await until(page, () => document.querySelector('.versions')?.textContent === '2/2');
  await untilDone(page);
  // Up in an empty field edits the last message.
  await page.focus('#message');
  await page.keyboard.press('ArrowUp');
  await page.waitForSelector('.editor textarea');
  await page.type('.editor textarea', ' changed');
  await page.keyboard.press('Enter');
  await until(page, () => document.querySelector('.turns').textContent.includes('Answer 2 to “second changed”'));
  await untilDone(page);
  assert.deepEqual(await questions(page), ['first', 'second changed']);
  assert.deepEqual(await version(page, 'user'), ['2/2']);
  await click(page, '.user button[aria-label="Previous version"]');
  await until(page, () => document.querySelector('.turns').textContent.includes('Answer 2 to “second”'));
  assert.deepEqual(await version(page, 'assistant'), ['2/2']);
});

withApp('conversations are there after a reload, and go on', {}, async (page) => {
  await ask(page, 'first');
  await page.reload();
  await untilReady(page);
  await until(page, () => document.querySelector('.assistant'));
  assert.deepEqual(await answers(page), ['Answer 1 to “first”.']);
  await ask(page, 'second');
  assert.deepEqual(await answers(page), ['Answer 1 to “first”.', 'Answer 2 to “second”.']);
});

withApp('an answer that the page left unfinished is kept', {}, async (page) => {
  await say(page, 'A long one');
  await until(page, () => document.querySelector('.assistant .markdown')?.textContent.includes('word150'));
  await page.reload();
  await until(page, () => document.querySelector('.ending')?.textContent.includes('Stopped'));
  assert.match((await answers(page))[0], /^word0 .*word150/); // all that was seen
});

withApp('conversations are found, renamed, deleted, and brought back', {}, async (page) => {
  await ask(page, 'about apples');
  await page.keyboard.down('Control');
  await page.keyboard.down('Shift');
  await page.keyboard.press('O');
  await page.keyboard.up('Shift');
  await page.keyboard.up('Control');
  await until(page, () => document.querySelector('.welcome'));
  await ask(page, 'about pears');
  const titles = () => textOf(page, '.sidebar .title');
  assert.deepEqual(await titles(), ['about pears', 'about apples']);
  await page.type('.search input', 'to “about app'); // words of the answer
  await until(page, () => document.querySelectorAll('.sidebar .title').length === 1);
  assert.deepEqual(await titles(), ['about apples']);
  await page.$eval('.search input', (field) => field.select());
  await page.keyboard.press('Backspace');
  await until(page, () => document.querySelectorAll('.sidebar .title').length === 2);
  await click(page, '.more[aria-label="Actions for about pears"]');
  await click(page, 'button[aria-label="Rename: about pears"]');
  await page.$eval('.rename', (field) => field.select());
  await page.type('.rename', 'Fruit');
  await page.keyboard.press('Enter');
  await until(page, () => document.querySelector('.sidebar .title').textContent === 'Fruit');
  await click(page, '.more[aria-label="Actions for Fruit"]');
  await click(page, 'button[aria-label="Delete: Fruit"]');
  await until(page, () => document.querySelectorAll('.sidebar .title').length === 1);
  await button(page, '.toast', 'Undo');
  await until(page, () => document.querySelectorAll('.sidebar .title').length === 2);
});

withApp('a tab that is looked at again shows what another tab wrote', {}, async (page) => {
  await ask(page, 'first');
  const other = await page.browserContext().newPage();
  await other.goto(page.url());
  await untilReady(other);
  await ask(other, 'second');
  await page.bringToFront();
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
  await until(page, () => document.querySelector('.turns').textContent.includes('Answer 2 to “second”'));
});

/** As another tab that writes: who reads or writes conversations waits until it has ended. */
const busyDatabase = (page) =>
  page.evaluate(async () => {
    const db = await new Promise((resolve) => (indexedDB.open('bezel').onsuccess = ({ target }) => resolve(target.result)));
    const writing = db.transaction(['conversations', 'messages'], 'readwrite');
    let ended = false;
    const goOn = () => ended || (writing.objectStore('messages').get('none').onsuccess = goOn);
    goOn();
    // Resolves after all that was asked of the database until now, and once more, for what that led to.
    const read = () => new Promise((resolve) => (db.transaction(['conversations', 'messages']).objectStore('messages').count().onsuccess = resolve));
    window.endWriting = async () => {
      ended = true;
      for (let i = 0; i < 3; i++) await read().then(() => new Promise((resolve) => setTimeout(resolve, 20)));
    };
  });
const endWriting = (page) => page.evaluate(() => window.endWriting());

withApp('while conversations are read slowly, the latest choice counts', {}, async (page) => {
  await ask(page, 'about apples');
  await newChat(page);
  await ask(page, 'about pears');
  await busyDatabase(page);
  await button(page, '.sidebar nav', 'about apples');
  await newChat(page);
  await endWriting(page);
  assert.deepEqual(await questions(page), []);
  assert.equal(await page.evaluate(() => location.hash), '');

  // Neither does a tab that is looked at again forget what is said in it just then, or an answer where it belongs.
  await busyDatabase(page);
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
  await say(page, 'about plums');
  await endWriting(page);
  assert.deepEqual(await questions(page), ['about plums']);
  await untilDone(page);
  assert.deepEqual(await answers(page), ['Answer 1 to “about plums”.']);

  await busyDatabase(page);
  await say(page, 'about figs');
  await button(page, '.sidebar nav', 'about apples');
  await endWriting(page);
  await untilDone(page);
  await button(page, '.sidebar nav', 'about plums');
  await until(page, () => document.querySelectorAll('.turns > .assistant').length === 2);
  assert.deepEqual(await answers(page), ['Answer 1 to “about plums”.', 'Answer 2 to “about figs”.']);
});

withApp('what is said before the conversations are there is kept with them', {}, async (page) => {
  await ask(page, 'about apples');
  await page.evaluateOnNewDocument(() => {
    window.opened = new Promise((resolve) => (window.letOpen = resolve));
    const listen = EventTarget.prototype.addEventListener;
    EventTarget.prototype.addEventListener = function (type, listener, ...rest) {
      const slow = this instanceof IDBOpenDBRequest && type === 'success';
      return listen.call(this, type, slow ? (event) => void window.opened.then(() => listener.call(this, event)) : listener, ...rest);
    };
  });
  await page.reload();
  await page.waitForSelector('#message');
  await page.type('#message', 'about pears');
  await page.keyboard.press('Enter');
  await page.evaluate(() => window.letOpen());
  await until(page, () => document.querySelectorAll('.turns > .assistant').length === 2);
  await untilDone(page);
  assert.deepEqual(await questions(page), ['about apples', 'about pears']);
});

const noDatabase = () => {
  IDBFactory.prototype.open = () => {
    throw new DOMException('The operation is insecure', 'SecurityError');
  };
};
const fullDatabase = () => {
  IDBObjectStore.prototype.put = () => {
    throw new DOMException('The quota has been exceeded', 'QuotaExceededError');
  };
};
for (const [what, before, why] of [
  ['without a database', noDatabase, /insecure/],
  ['with a full database', fullDatabase, /quota/],
])
  withApp(`${what} conversations last as long as the page, which says so`, { before }, async (page) => {
    await ask(page, 'about apples');
    await newChat(page);
    await ask(page, 'about pears');
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
    await button(page, '.sidebar nav', 'about apples');
    await until(page, () => document.querySelector('.bubble')?.textContent === 'about apples');
    await ask(page, 'and plums');
    assert.deepEqual(await answers(page), ['Answer 1 to “about apples”.', 'Answer 2 to “and plums”.']);
    const [notice] = await textOf(page, '.notice.error');
    assert.match(notice, /cannot be kept in this browser.*export what matters/s);
    assert.match(notice, why);
    await click(page, '.more[aria-label="Actions for about pears"]');
    await click(page, 'button[aria-label="Delete: about pears"]');
    await until(page, () => document.querySelectorAll('.sidebar .title').length === 1);
    await button(page, '.toast', 'Undo');
    await button(page, '.sidebar nav', 'about pears');
    await until(page, () => document.querySelector('.bubble')?.textContent === 'about pears');
    assert.deepEqual(await answers(page), ['Answer 1 to “about pears”.']);
  });

withApp('conversations are exported', {}, async (page) => {
  await ask(page, 'first');
  await page.evaluate(() => {
    window.saved = [];
    URL.createObjectURL = (blob) => (window.saved.push(blob), 'blob:none');
    HTMLAnchorElement.prototype.click = () => {};
  });
  for (const kind of ['MD', 'JSON']) {
    await click(page, '.more');
    await click(page, `button[aria-label="Export as ${kind}: first"]`);
  }
  await until(page, () => window.saved.length === 2);
  const [markdown, json] = await page.evaluate(() => Promise.all(window.saved.map((blob) => blob.text())));
  assert.equal(markdown, '# first\n\n## You\n\nfirst\n\n## Answer\n\nAnswer 1 to “first”.\n');
  assert.equal(JSON.parse(json).messages.length, 2);
});

withApp('settings persist and are used', {}, async (page) => {
  await button(page, '.sidebar-bottom', 'Settings');
  await page.type('#system', 'Be brief.');
  await page.$$eval('.segments span', (all) => all.find((one) => one.textContent === 'Dark').click());
  await page.keyboard.press('Escape');
  await page.waitForSelector('.sheet', { hidden: true });
  await page.reload();
  await untilReady(page);
  assert.equal(await page.$eval('html', (root) => root.dataset.theme), 'dark');
  await ask(page, 'first');
  assert.deepEqual(await answers(page), ['Answer 1 to “first”. I was told: Be brief.']);
});

withApp('thinking is shown folded', {}, async (page) => {
  await click(page, '.chip');
  await ask(page, 'first');
  assert.equal(await page.$eval('.thinking', (details) => details.open), false);
  assert.match((await textOf(page, '.thinking summary'))[0], /^Thought for/);
  assert.equal((await answers(page)).at(-1), 'Answer 1 to “first”.');
});

withApp('an answer that fails says why and what to do', {}, async (page) => {
  await ask(page, 'fail');
  assert.match((await textOf(page, '.ending'))[0], /no memory left.*smaller model.*Try again/s);
});

withApp('what a model writes is inert', {}, async (page) => {
  const requests = [];
  page.on('request', (request) => requests.push(request.url()));
  await ask(page, 'hostile');
  await page.waitForSelector('.katex');
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  const inside = (selector) => page.$$eval(`.turns .markdown :is(${selector})`, (all) => all.map((one) => one.outerHTML));
  assert.deepEqual(await inside('img, script, iframe, object, embed, form, [onclick], [onerror]'), []);
  const links = await page.$$eval('.turns .markdown a', (all) => all.map((one) => [one.href, one.rel, one.target]));
  assert.deepEqual(links, [
    ['https://example.org/', 'noopener noreferrer nofollow', '_blank'],
    ['https://example.org/pixel.png', 'noopener noreferrer nofollow', '_blank'],
  ]);
  // The welcome's own drawing is a blob of this page, which nothing is fetched for.
  const own = [app.url, `blob:${new URL(app.url).origin}/`];
  assert.deepEqual(requests.filter((url) => !own.some((start) => url.startsWith(start))), []);
});

withApp('code is coloured, formulas are set', {}, async (page) => {
  await ask(page, 'rainbow');
  await page.waitForSelector('.hljs-keyword');
  await page.waitForSelector('.math.display .katex-display');
  assert.equal(await page.$$eval('.markdown td', (all) => all.length), 6);
});

withApp('without WebGPU it says why it is slow, and answers', { before: () => delete Navigator.prototype.gpu }, async (page) => {
  assert.match((await textOf(page, '.notice'))[0], /processor computes.*no WebGPU.*hardware acceleration/s);
  await ask(page, 'first');
  assert.deepEqual(await answers(page), ['Answer 1 to “first”.']);
});

withApp('models are checked, downloaded, paused, used and deleted', {}, async (page) => {
  await click(page, '.model-button');
  await until(page, () => document.querySelectorAll('.models li').length === 3);
  await page.type('.add input[type=url]', 'https://example.org/missing.gguf');
  await button(page, '.add', 'Check');
  await until(page, () => document.querySelector('.fit')?.textContent.includes('does not exist'));
  await click(page, 'button[aria-label="Will it fit? gemma4:e2b"]');
  await until(page, () => document.querySelector('.verdict')?.textContent === 'It fits.');
  await button(page, '.fit', 'Download');
  await until(page, () => /\/s, .* left/.test(document.querySelector('.job')?.textContent ?? ''));
  await click(page, 'button[aria-label="Pause gemma4:e2b"]');
  await until(page, () => document.querySelector('.job').textContent.includes('Paused at'));
  await click(page, 'button[aria-label="Resume gemma4:e2b"]');
  await until(page, () => !document.querySelector('.job'));
  await click(page, '.models li:nth-child(2) button[aria-label="Use gemma4:e2b"]');
  await until(page, () => document.querySelector('.models li:nth-child(2) .in-use')?.textContent === 'In use');
  assert.equal((await textOf(page, '.model-name'))[0], 'gemma4:e2b');
  await click(page, 'button[aria-label="Use Nano"]');
  await until(page, () => document.querySelector('.models li .in-use')?.textContent === 'In use');
  await click(page, 'button[aria-label="Delete gemma4:e2b"]');
  await until(page, () => document.querySelectorAll('.models li').length === 3);
});

withApp('a model that does not load leaves a way back', {}, async (page) => {
  await click(page, '.model-button');
  await page.type('.add input[type=url]', 'https://example.org/broken.gguf');
  await button(page, '.add', 'Check');
  await until(page, () => document.querySelector('.verdict'));
  await button(page, '.fit', 'Use now');
  await until(page, () => document.querySelector('.notice.error')?.textContent.includes('no GGUF file'));
  await button(page, '.notice', 'Use the embedded model');
  await untilReady(page);
});

withApp('on a phone the list is a drawer', { viewport: phone }, async (page) => {
  await ask(page, 'first');
  const visible = () => page.$eval('.sidebar', (list) => getComputedStyle(list).visibility === 'visible' && list.getBoundingClientRect().left >= 0);
  assert.equal(await visible(), false);
  await click(page, 'button[aria-label="Conversations"]');
  await until(page, () => document.querySelector('.sidebar').getBoundingClientRect().left === 0);
  assert.equal(await page.$eval('.sidebar', (list) => list.contains(document.activeElement)), true);
  await page.keyboard.press('Escape');
  await until(page, () => getComputedStyle(document.querySelector('.sidebar')).visibility === 'hidden');
  const small = await page.$$eval('main button, main textarea', (all) =>
    all.filter((one) => one.offsetParent && one.getBoundingClientRect().height < (one.id === 'message' ? 30 : 44)).map((one) => one.outerHTML),
  );
  assert.deepEqual(small, []);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
});

for (const scheme of ['light', 'dark']) {
  withApp(`it is accessible, ${scheme}`, { scheme, before: () => delete Navigator.prototype.gpu }, async (page) => {
    await expectAccessible(page, 'the first view');
    await click(page, '.chip');
    await ask(page, 'rainbow');
    await page.waitForSelector('.hljs-keyword');
    await click(page, 'button[aria-label^="Performance"]');
    await click(page, '.more');
    await expectAccessible(page, 'a conversation');
    await click(page, '.model-button');
    await click(page, 'button[aria-label="Will it fit? gemma4:31b"]');
    await until(page, () => document.querySelector('.verdict'));
    await expectAccessible(page, 'models');
    await page.keyboard.press('Escape');
    await page.waitForSelector('.sheet', { hidden: true });
    await button(page, '.sidebar-bottom', 'Settings');
    await page.waitForSelector('#system');
    await expectAccessible(page, 'settings');
    await page.keyboard.press('Escape');
    await page.waitForSelector('.sheet', { hidden: true });
    await ask(page, 'fail');
    await expectAccessible(page, 'a failed answer');
    await click(page, '.turns > .user button[aria-label="Edit the message"]');
    await expectAccessible(page, 'a message being edited');
  });

  withApp(`it is accessible on a phone, ${scheme}`, { scheme, viewport: phone }, async (page) => {
    await expectAccessible(page, 'the first view');
    await ask(page, 'rainbow');
    await expectAccessible(page, 'a conversation');
    await click(page, 'button[aria-label="Conversations"]');
    await until(page, () => document.querySelector('.sidebar').getBoundingClientRect().left === 0);
    await expectAccessible(page, 'the drawer');
    await page.keyboard.press('Escape');
    await click(page, '.model-button');
    await page.waitForSelector('.sheet');
    await expectAccessible(page, 'models');
  });
}

for (const [device, chosen] of [['light', 'dark'], ['dark', 'light']]) {
  withApp(`the person's choice of ${chosen} counts on a ${device} device`, { scheme: device }, async (page) => {
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const colours = { light: 'rgb(250, 249, 247)', dark: 'rgb(22, 24, 23)' };
    assert.equal(await background(), colours[device]);
    await button(page, '.sidebar-bottom', 'Settings');
    const choose = (text) => page.$$eval('.segments span', (all, text) => all.find((one) => one.textContent === text).click(), text);
    await choose(chosen === 'dark' ? 'Dark' : 'Light');
    assert.equal(await background(), colours[chosen]);
    assert.equal(await page.$$eval('meta[name="theme-color"]', (all) => all.find((one) => matchMedia(one.media || 'all').matches).content), { light: '#faf9f7', dark: '#161817' }[chosen]);
  });
}

/** Width and height of a PNG. */
const pngSize = (bytes) => [bytes.readUInt32BE(16), bytes.readUInt32BE(20)].join('x');

test('it can be installed', async () => {
  const page = await openApp(browser, app.url);
  const session = await page.createCDPSession();
  const { url, data, errors } = await session.send('Page.getAppManifest');
  assert.deepEqual(errors, []);
  const manifest = JSON.parse(data);
  for (const field of ['id', 'name', 'short_name', 'description', 'start_url', 'scope', 'background_color', 'theme_color']) assert.ok(manifest[field], field);
  assert.equal(manifest.display, 'standalone');
  assert.equal(new URL(manifest.start_url, url).href, app.url);
  for (const { src, sizes, type } of manifest.icons) {
    const response = await fetch(new URL(src, url));
    assert.equal(response.headers.get('Content-Type'), type, src);
    const bytes = Buffer.from(await response.arrayBuffer());
    if (type === 'image/png') assert.equal(pngSize(bytes), sizes, src);
  }
  const pngs = manifest.icons.filter(({ type }) => type === 'image/png');
  for (const size of ['192x192', '512x512']) assert.ok(pngs.some(({ sizes, purpose }) => sizes === size && purpose !== 'maskable'), size);
  assert.ok(pngs.some(({ purpose, sizes }) => purpose === 'maskable' && sizes === '512x512'));
  assert.equal(await page.$eval('link[rel="apple-touch-icon"]', async (link) => (await fetch(link.href)).status), 200);
  assert.ok(await page.$('meta[name="viewport"]') && (await page.$eval('html', (root) => root.lang)));
  // What is left is about the test: nobody installs from a private context.
  const { installabilityErrors } = await session.send('Page.getInstallabilityErrors');
  assert.deepEqual(installabilityErrors.map(({ errorId }) => errorId).filter((id) => id !== 'in-incognito'), []);
  await page.evaluate(workerReady);
  await page.reload();
  await page.waitForSelector('#message');
  assert.match(await page.evaluate(() => navigator.serviceWorker.controller?.scriptURL ?? ''), /\/sw\.js$/);
  await page.browserContext().close();
});

/** Greedy: the weights are random, and a chosen token could end an answer at once. */
const fewTokens = () => localStorage.setItem('bezel.settings', JSON.stringify({ maxTokens: 64, temperature: 0 }));
const workerReady = () => navigator.serviceWorker.ready.then(({ active }) => active.state === 'activated' || new Promise((resolve) => active.addEventListener('statechange', () => active.state === 'activated' && resolve())));

for (const isolated of [true, false]) {
  test(`the real engine answers, and starts without a network; ${isolated ? 'isolated' : 'not isolated'}`, async () => {
    const real = await serveApp('build/app-tiny', { isolated });
    const page = await openApp(browser, real.url, { before: fewTokens });
    await untilReady(page);
    assert.equal(await page.evaluate(() => crossOriginIsolated), isolated);
    // Its weights are random: any text is right.
    await (isolated ? ask : askBriefly)(page, 'Hello');
    assert.deepEqual(await textOf(page, '.failed'), []);
    if (isolated) assert.match((await textOf(page, '.turns .stats'))[0], /tok\/s/);
    await page.evaluate(workerReady);
    real.close();
    await page.reload();
    await untilReady(page);
    assert.deepEqual(await questions(page), ['Hello']);
    await askBriefly(page, 'Again');
    assert.deepEqual(await textOf(page, '.failed'), []);
    await page.browserContext().close();
  });
}

withApp('the real engine keeps a model from an address, and loads it after a reload', { url: app.url.replace('app-test', 'app-tiny'), before: fewTokens }, async (page) => {
  await click(page, '.model-button');
  await page.type('.add input[type=url]', new URL('../../tests/data/tiny-e4b.gguf', app.url).href);
  await button(page, '.add', 'Check');
  await until(page, () => document.querySelector('.verdict')?.textContent === 'It fits.');
  await button(page, '.fit', 'Download');
  await click(page, 'button[aria-label="Use tiny-e4b"]');
  await until(page, () => document.querySelector('.models li:nth-child(2) .in-use')?.textContent === 'In use');
  await page.reload();
  await untilReady(page);
  assert.deepEqual(await textOf(page, '.model-name'), ['tiny-e4b']);
  await askBriefly(page, 'Hello');
  assert.deepEqual(await textOf(page, '.failed'), []);
});

// Pictures and recordings in the app: Chromium, the real engine and the embedded model.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { after, test } from 'node:test';
import { click, expectAccessible, launch, openApp, phone, say, serveApp, textOf, untilReady } from './app.mjs';

/** A software adapter looks at a picture for twenty seconds, of a machine that has nothing else to do. */
const patience = 300_000;
const data = 'tests/data/nano';
const star = 'shapes-and-colours-64-0.png';
const digits = 'spoken-digits-0.wav';
const app = await serveApp('build/app-nano');
const browser = await launch({
  args: ['--use-fake-ui-for-media-stream', '--use-fake-device-for-media-stream', `--use-file-for-fake-audio-capture=${resolve(data, digits)}`],
});
after(async () => {
  await browser.close();
  app.close();
});

const exact = () => localStorage.setItem('bezel.settings', JSON.stringify({ temperature: 0, maxTokens: 64 }));
const withApp = (name, options, body) =>
  test(name, async () => {
    const page = await openApp(browser, app.url.replace('app-nano', options.build ?? 'app-nano'), { before: exact, ...options });
    await untilReady(page);
    await body(page);
    assert.deepEqual(page.errors, []);
    await page.browserContext().close();
  });

const until = (page, check, ...args) => page.waitForFunction(check, { timeout: patience, polling: 50 }, ...args);
const untilDone = (page) => page.waitForSelector('button[aria-label="Send"]', { timeout: patience });
const thumbnails = (page) => page.$$eval('.thumbnail', (all) => all.length);
const answers = (page) => textOf(page, '.turns > .assistant .markdown');
const choose = async (page, ...names) => (await page.$('#attach')).uploadFile(...names.map((name) => `${data}/${name}`));

/** A file over the page, let go or pasted. */
const bring = (page, event, name, type) =>
  page.evaluate(
    (event, name, type, text) => {
      const file = new File([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))], name, { type });
      const transfer = new DataTransfer();
      transfer.items.add(file);
      const target = document.querySelector('.scroller');
      if (event === 'paste') target.dispatchEvent(new ClipboardEvent('paste', { clipboardData: transfer, bubbles: true, cancelable: true }));
      else for (const step of ['dragover', 'drop']) target.dispatchEvent(new DragEvent(step, { dataTransfer: transfer, bubbles: true, cancelable: true }));
    },
    event,
    name,
    type,
    readFileSync(`${data}/${name}`).toString('base64'),
  );

withApp('a dropped picture is described, and is there after a reload', {}, async (page) => {
  await bring(page, 'drop', star, 'image/png');
  await page.waitForSelector('.thumbnail img');
  await page.focus('#message');
  await say(page, 'What is this?');
  await until(page, () => /Looking at the picture/.test(document.querySelector('.assistant')?.textContent));
  assert.equal(await thumbnails(page), 0);
  await untilDone(page);
  assert.deepEqual(await answers(page), ['A red star on a grey background.']);
  await page.reload();
  await untilReady(page);
  await until(page, () => document.querySelector('.attachments img')?.naturalWidth === 384);
  // It is still part of what is asked: another answer is the same.
  await click(page, 'button[aria-label="Answer again"]');
  await until(page, () => document.querySelector('.versions')?.textContent === '2/2');
  await untilDone(page);
  assert.deepEqual(await answers(page), ['A red star on a grey background.']);
  // An edited question keeps it.
  await page.focus('#message');
  await page.keyboard.press('ArrowUp');
  await page.waitForSelector('.editor textarea');
  await page.waitForSelector('.editor .attachments img');
  await page.$eval('.editor textarea', (field) => field.select());
  await page.keyboard.type('Describe this image.');
  await page.keyboard.press('Enter');
  await until(page, () => document.querySelector('.bubble')?.textContent === 'Describe this image.');
  await untilDone(page);
  assert.match((await answers(page))[0], /red star/);
  assert.equal(await page.$$eval('.attachments img', (all) => all.length), 1);
});

withApp('attachments are chosen, pasted, removed and refused', {}, async (page) => {
  await choose(page, star, digits);
  await until(page, () => document.querySelectorAll('.thumbnail').length === 2);
  await bring(page, 'paste', 'shapes-and-colours-64-4.png', 'image/png');
  await until(page, () => document.querySelectorAll('.thumbnail').length === 3);
  await click(page, `button[aria-label="Remove the picture ${star}"]`);
  await click(page, `button[aria-label="Remove the recording ${digits}"]`);
  assert.equal(await thumbnails(page), 1);
  await choose(page, 'questions.json');
  await until(page, () => /questions\.json is no picture/.test(document.querySelector('.toast')?.textContent));
  assert.equal(await thumbnails(page), 1);
  // Without a word: the picture itself is the question.
  await page.focus('#message');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.assistant');
  await untilDone(page);
  assert.match((await answers(page))[0], /purple circle on a pink background/);
  assert.match((await textOf(page, '.sidebar'))[0], /Picture: shapes-and-colours/);
});

withApp('a recording is made by holding the button, and transcribed', {}, async (page) => {
  const button = await page.waitForSelector('button[aria-label^="Record"]');
  const { x, y, width, height } = await button.boundingBox();
  await page.mouse.move(x + width / 2, y + height / 2);
  await page.mouse.down();
  await until(page, () => document.querySelector('.meter output')?.textContent === '0:03');
  assert.ok((await page.$eval('.meter meter', (meter) => meter.value)) > 0, 'the meter moves');
  await page.mouse.up();
  await page.waitForSelector('.thumbnail.audio');
  assert.match((await textOf(page, '.thumbnail'))[0], /Recording, 0:0[34]/);
  await page.evaluate(() => [...document.querySelectorAll('.chip')].find((chip) => chip.textContent === 'Transcribe').click());
  await page.waitForSelector('.assistant');
  await untilDone(page);
  assert.match((await answers(page))[0], /^[\d ]+$/); // which digits depends on when the fake microphone began
  await page.waitForSelector('.attachments audio');
  // Esc gives up.
  await page.mouse.down();
  await page.waitForSelector('.meter');
  await page.keyboard.press('Escape');
  await page.waitForSelector('.meter', { hidden: true });
  await page.mouse.up();
  assert.equal(await thumbnails(page), 0);
});

withApp('a recording from a file is transcribed', {}, async (page) => {
  await choose(page, digits);
  await page.waitForSelector('.thumbnail.audio');
  await say(page, 'Transcribe the audio.');
  await untilDone(page);
  assert.deepEqual(await answers(page), ['7 6 1 2 1']);
});

withApp('looking can be stopped', {}, async (page) => {
  await choose(page, star);
  await page.waitForSelector('.thumbnail');
  await say(page, 'What is this?');
  await until(page, () => /Looking at the picture/.test(document.querySelector('.assistant')?.textContent));
  await page.keyboard.press('Escape');
  await untilDone(page);
  assert.match((await textOf(page, '.ending'))[0], /Stopped/);
});

withApp('a picture is taken with the camera, on a phone', { viewport: phone }, async (page) => {
  await click(page, 'button[aria-label="Take a picture"]');
  await until(page, () => document.querySelector('.sheet .primary')?.disabled === false);
  await click(page, '.sheet .primary');
  await page.waitForSelector('.thumbnail img');
  await page.waitForSelector('.sheet', { hidden: true });
});

withApp('the welcome shows off what it sees', {}, async (page) => {
  await click(page, '.picture-idea');
  await page.waitForSelector('.assistant');
  await untilDone(page);
  assert.match((await answers(page))[0], / on a (white|black) background\.$/);
});

withApp('a model without eyes is told what was there', { build: 'app-tiny' }, async (page) => {
  assert.equal(await page.$('#attach'), null);
  await bring(page, 'drop', star, 'image/png');
  await until(page, () => /cannot see/.test(document.querySelector('.sense-notice')?.textContent));
  await say(page, 'What is this?');
  await untilDone(page);
  assert.deepEqual(await textOf(page, '.failed'), []);
  await page.waitForSelector('.attachments img');
});

for (const scheme of ['light', 'dark']) {
  withApp(`attachments are accessible, ${scheme}`, { build: 'app-test', scheme }, async (page) => {
    await choose(page, star, digits);
    await until(page, () => document.querySelectorAll('.thumbnail').length === 2);
    await expectAccessible(page, 'the composer');
    await page.focus('#message');
    await say(page, 'rainbow');
    await untilDone(page);
    await expectAccessible(page, 'a conversation');
    // By keyboard: a press begins, another ends.
    await page.focus('button[aria-label^="Record"]');
    await page.keyboard.press('Enter');
    await until(page, () => document.querySelector('.meter output')?.textContent === '0:01');
    await expectAccessible(page, 'a recording');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.thumbnail.audio');
    await click(page, 'button[aria-label="Take a picture"]');
    await until(page, () => document.querySelector('.sheet .primary')?.disabled === false);
    await expectAccessible(page, 'the camera');
  });
}

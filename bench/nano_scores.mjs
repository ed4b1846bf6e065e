// What the embedded model sees and hears through the package in Chromium: the pictures and recordings of
// tests/data/nano, all of them or every EVERYth.   node bench/nano_scores.mjs [EVERY]
// Prints a table: answers that are right, and those that are transformers' own.
import puppeteer from 'puppeteer-core';
import { blankPage, startServer } from '../web/test/server.mjs';

const server = await startServer({ handle: blankPage });
const browser = await puppeteer.launch({
  headless: true,
  protocolTimeout: 1_800_000,
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--enable-unsafe-webgpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'],
});
try {
  const page = await browser.newPage();
  page.on('console', (message) => console.error(message.text())); // each answer as it comes
  await page.goto(`${server.address}/blank`);
  const results = await page.evaluate(async (every) => {
    const { createEngine } = await import('/web/dist/index.js');
    const { answerTo, messageOf, questionsOf } = await import('/web/test/media_checks.mjs');
    const host = {
      read: async (path) => new Uint8Array(await (await fetch(`/${path}`)).arrayBuffer()),
      picture: (bytes) => new Blob([bytes], { type: 'image/png' }),
    };
    const engine = await createEngine();
    const model = await engine.load(await host.read('models/nano.gguf'), { context: 1024 });
    const results = [];
    const questions = (await questionsOf(host)).filter(({ picture, sound }) => picture || sound);
    questions.reverse(); // recordings take less time than pictures: something to see early
    for (const question of questions.filter((_, i) => i % every === 0)) {
      const began = performance.now();
      const { text } = await answerTo(model, [await messageOf(host, question)]);
      const { skill, expected, given } = question;
      results.push({ skill, expected, given, text, ms: performance.now() - began });
      console.log(JSON.stringify(results.at(-1)));
    }
    return results;
  }, Number(process.argv[2] ?? 1));
  const rows = {};
  for (const { skill, expected, given, text, ms } of results) {
    const row = (rows[skill] ??= { asked: 0, right: 0, 'right by transformers': 0, 'as transformers': 0, 'seconds each': 0 });
    row.asked++;
    row.right += text === expected;
    row['right by transformers'] += given === expected;
    row['as transformers'] += text === given;
    row['seconds each'] += ms / 1000;
    if (text !== given) console.log(`${skill}: "${text}", transformers "${given}", right is "${expected}"`);
  }
  for (const row of Object.values(rows)) row['seconds each'] = Number((row['seconds each'] / row.asked).toFixed(2));
  console.table(rows);
} finally {
  await browser.close();
  server.close();
}

// Pictures of the app's main views, for looking at: node web/test/screenshots.mjs   ->   build/screenshots
import { mkdirSync } from 'node:fs';
import { ask, click, launch, openApp, phone, say, serveApp, untilReady } from './app.mjs';

const folder = 'build/screenshots';
mkdirSync(folder, { recursive: true });
const app = await serveApp('build/app-test');
const browser = await launch();
const settle = () => new Promise((resolve) => setTimeout(resolve, 400));
const shoot = async (page, name) => {
  await settle();
  await page.screenshot({ path: `${folder}/${name}.png` });
};

for (const scheme of ['light', 'dark']) {
  const page = await openApp(browser, app.url, { scheme });
  await untilReady(page);
  await shoot(page, `welcome-${scheme}`);
  await click(page, '.chip');
  await ask(page, 'How does a rainbow form?');
  await shoot(page, `chat-end-${scheme}`);
  await page.$eval('.scroller', (box) => box.scrollTo(0, 0));
  await shoot(page, `chat-${scheme}`);
  await click(page, 'button[aria-label^="Performance"]');
  await say(page, 'A long one, please.');
  await new Promise((resolve) => setTimeout(resolve, 2500));
  await shoot(page, `performance-${scheme}`);
  await page.keyboard.press('Escape');
  await click(page, '.perf button[aria-label="Close"]');
  await click(page, 'button[aria-label="Answer again"]');
  await page.keyboard.press('Escape');
  await click(page, '.more');
  await shoot(page, `stopped-${scheme}`);
  await click(page, '.model-button');
  await page.waitForSelector('.sheet');
  await click(page, 'button[aria-label="Will it fit? gemma4:e2b"]');
  await shoot(page, `models-fit-${scheme}`);
  await page.evaluate(() => [...document.querySelectorAll('.fit button')].find((b) => b.textContent.includes('Download')).click());
  await shoot(page, `models-${scheme}`);
  await page.keyboard.press('Escape');
  await page.evaluate(() => [...document.querySelectorAll('.row')].find((b) => b.textContent.includes('Settings')).click());
  await shoot(page, `settings-${scheme}`);
  const chosen = scheme === 'light' ? 'Dark' : 'Light';
  await page.$$eval('.segments span', (all, chosen) => all.find((one) => one.textContent === chosen).click(), chosen);
  await page.keyboard.press('Escape');
  await page.waitForSelector('.sheet', { hidden: true });
  await shoot(page, `chosen-${chosen.toLowerCase()}-on-${scheme}`);
  await page.browserContext().close();
}

for (const scheme of ['light', 'dark']) {
  const page = await openApp(browser, app.url, { viewport: phone, scheme, before: () => delete Navigator.prototype.gpu });
  await untilReady(page);
  await shoot(page, `phone-welcome-${scheme}`);
  await ask(page, 'How does a rainbow form?');
  await shoot(page, `phone-chat-${scheme}`);
  await page.$eval('.scroller', (box) => box.scrollTo(0, 0));
  await shoot(page, `phone-chat-top-${scheme}`);
  await click(page, 'button[aria-label="Conversations"]');
  await shoot(page, `phone-drawer-${scheme}`);
  await page.keyboard.press('Escape');
  await click(page, '.model-button');
  await shoot(page, `phone-models-${scheme}`);
  await page.browserContext().close();
}
await browser.close();
app.close();

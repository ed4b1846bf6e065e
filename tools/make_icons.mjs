// The app's PNG icons from its SVG: node tools/make_icons.mjs
import { readFileSync } from 'node:fs';
import puppeteer from 'puppeteer-core';

const folder = new URL('../web/app/public/', import.meta.url).pathname;
const svg = readFileSync(`${folder}icon.svg`, 'utf8');
const icons = [
  { file: 'icon-180.png', size: 180, square: true },
  { file: 'icon-192.png', size: 192 },
  { file: 'icon-512.png', size: 512 },
  { file: 'icon-maskable-512.png', size: 512, square: true }, // the platform cuts its own shape
];
const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
const page = await browser.newPage();
for (const { file, size, square } of icons) {
  await page.setViewport({ width: size, height: size });
  const drawn = square ? svg.replace('rx="15"', 'rx="0"') : svg;
  await page.setContent(`<style>body{margin:0}svg{display:block;width:${size}px;height:${size}px}</style>${drawn}`);
  await page.screenshot({ path: `${folder}${file}`, omitBackground: true });
}
await browser.close();

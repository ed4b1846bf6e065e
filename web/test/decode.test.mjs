// How a page decodes pictures, recordings and videos: Chromium, without any engine.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { launch } from './app.mjs';
import { readPng } from './png.mjs';
import { blankPage, startServer } from './server.mjs';

let server, browser, page;
before(async () => {
  server = await startServer({ handle: blankPage });
  browser = await launch({ gpu: false });
  page = await browser.newPage();
  await page.goto(`${server.address}/blank`);
});
after(async () => {
  await browser.close();
  server.close();
});

const picture = 'tests/data/nano/questions-about-pictures-63-19.png';

test('opaque pictures come out to the byte', async () => {
  const got = await page.evaluate(async (path) => {
    const { decodePicture } = await import('/web/dist/decode.js');
    const { data, width, height } = await decodePicture(await (await fetch(`/${path}`)).blob());
    return { data: Array.from(data), width, height };
  }, picture);
  const { data, width, height } = readPng(new Uint8Array(readFileSync(picture)));
  assert.deepEqual([got.width, got.height], [width, height]);
  assert.deepEqual(got.data.filter((_, i) => i % 4 !== 3), Array.from(data));
});

test('a picture larger than the engine likes is made smaller', async () => {
  const size = await page.evaluate(async () => {
    const { decodePicture } = await import('/web/dist/decode.js');
    const canvas = new OffscreenCanvas(8000, 4000);
    canvas.getContext('2d').fillRect(0, 0, 1, 1);
    const { data, width, height } = await decodePicture(await canvas.convertToBlob({ type: 'image/jpeg' }));
    return { bytes: data.length, width, height };
  });
  assert.ok(Math.abs(size.width / size.height - 2) < 0.01 && size.width * size.height <= 16e6 && size.bytes === 4 * size.width * size.height, JSON.stringify(size));
});

test('a compressed recording becomes samples', async () => {
  const got = await page.evaluate(async () => {
    const { decodeSound } = await import('/web/dist/decode.js');
    const context = new AudioContext();
    const tone = new OscillatorNode(context, { frequency: 440 });
    const into = context.createMediaStreamDestination();
    tone.connect(into);
    tone.start();
    const recorder = new MediaRecorder(into.stream);
    const data = new Promise((resolve) => (recorder.ondataavailable = ({ data }) => resolve(data)));
    recorder.start();
    await new Promise((resolve) => setTimeout(resolve, 1200));
    recorder.stop();
    const { samples, rate, channels } = await decodeSound(await data);
    return { seconds: samples.length / rate / channels, rate, loudest: samples.reduce((most, x) => Math.max(most, Math.abs(x)), 0) };
  });
  assert.equal(got.rate, 48000);
  assert.ok(got.seconds > 0.5 && got.seconds < 3 && got.loudest > 0.3, JSON.stringify(got));
});

test('a video becomes frames with their times, every time', async () => {
  // As the browser records: the file does not tell how long it is. Often, since a picture may be late by a moment when the machine is busy.
  const runs = await page.evaluate(async () => {
    const { videoFrames } = await import('/web/dist/decode.js');
    const video = await (await fetch('/tests/data/media/red-then-blue.webm')).blob();
    const runs = [];
    for (let i = 0; i < 40; i++) {
      const frames = [];
      for await (const { pixels, seconds } of videoFrames(video, 32)) {
        const [r, , b] = pixels.data;
        frames.push(`${seconds.toFixed(2)}: ${pixels.width} x ${pixels.height} ${r > 180 && b < 80 ? 'red' : r < 80 && b > 180 ? 'blue' : 'neither'}`);
      }
      runs.push(frames);
    }
    return runs;
  });
  for (const frames of runs) assert.deepEqual(frames, ['0.00: 64 x 48 red', '0.49: 64 x 48 red', '0.98: 64 x 48 red', '1.47: 64 x 48 blue']);
});

test('what is broken is told', async () => {
  const kinds = await page.evaluate(async () => {
    const { decodePicture, decodeSound, videoFrames } = await import('/web/dist/decode.js');
    const kind = (promise) => promise.then(() => 'fine', (error) => error.kind);
    const noise = new Blob([new Uint8Array(100).fill(77)], { type: 'video/mp4' });
    return Promise.all([kind(decodePicture(noise)), kind(decodeSound(noise)), kind(videoFrames(noise, 32).next())]);
  });
  assert.deepEqual(kinds, ['invalid', 'invalid', 'invalid']);
});

// Pictures, recordings and videos through the package, with the embedded model: part of checks.mjs.
import { BezelError, Engine, writeWav } from '../dist/index.js';
import { EngineHost } from '../dist/host.js';

const folder = 'tests/data/nano';
const expect = (condition, message) => {
  if (!condition) throw new Error(message);
};
const expectEqual = (got, expected, what) => expect(got === expected, `${what}: got ${JSON.stringify(got)}, expected ${JSON.stringify(expected)}`);
async function expectError(promise, kind, pattern) {
  const error = await promise.then(() => undefined, (error) => error);
  expect(error instanceof BezelError && error.kind === kind, `expected an error of kind ${kind}, got ${error?.kind}: ${error?.message}`);
  expect(pattern.test(error.message), `unexpected message: ${error.message}`);
}

export async function questionsOf(host) {
  return JSON.parse(new TextDecoder().decode(await host.read(`${folder}/questions.json`)));
}

/** Counts what the engine was asked to encode. */
export async function loadNano(host, options = {}) {
  const port = await EngineHost.create({ wasm: host.wasm, gpu: host.gpu });
  const counts = { see: 0, hear: 0, forget: 0 };
  const call = port.call.bind(port);
  port.call = (method, ...rest) => {
    if (method in counts) counts[method]++;
    return call(method, ...rest);
  };
  const engine = await Engine.create(port);
  return { engine, counts, model: await engine.load(await host.read('models/nano.gguf'), { context: 1024, ...options }) };
}

/** The message that one of questions.json is. */
export async function messageOf(host, { picture, sound, question }) {
  const content = [];
  if (picture) content.push({ type: 'image', image: host.picture(await host.read(`${folder}/${picture}`)) });
  if (sound) content.push({ type: 'audio', audio: new Blob([await host.read(`${folder}/${sound}`)]) });
  if (question) content.push({ type: 'text', text: question });
  return { role: 'user', content };
}

export async function answerTo(model, messages, options = {}) {
  const { choices, usage } = await model.chat.completions.create({ messages, temperature: 0, max_tokens: 40 }, options);
  return { text: choices[0].message.content, usage };
}

const text = (text) => ({ type: 'text', text });
const base64 = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));

export const mediaChecks = {
  'pictures and recordings are answered as transformers does': async ({ host }) => {
    const { model } = await loadNano(host);
    expect(model.sees && model.hears, 'nano has eyes and ears');
    const questions = await questionsOf(host);
    const some = ['shapes-and-colours-64-1.png', 'digits-in-pictures-63-7.png', 'questions-about-pictures-64-19.png', 'spoken-digits-2.wav', 'spoken-words-5.wav'];
    for (const name of some) {
      const one = questions.find(({ picture, sound }) => (picture ?? sound) === name);
      const message = await messageOf(host, one);
      expectEqual((await answerTo(model, [message])).text, one.given, name);
    }
  },

  'a picture stays in the conversation and is encoded once': async ({ host }) => {
    const { model, counts } = await loadNano(host);
    const first = await host.read(`${folder}/shapes-and-colours-64-0.png`);
    // Each time another object with the same bytes, as from a database.
    const conversation = () => ({ role: 'user', content: [{ type: 'image', image: host.picture(first.slice()) }, text('What is this?')] });
    const progress = [];
    const { text: answer, usage } = await answerTo(model, [conversation()], { onMedia: (one) => progress.push(one) });
    expectEqual(answer, 'A red star on a grey background.', 'first answer');
    expect(progress.length > 1 && progress.every(({ kind }) => kind === 'picture'), 'progress was told');
    const next = [conversation(), { role: 'assistant', content: answer }, { role: 'user', content: 'What colour is the star?' }];
    const again = await answerTo(model, next);
    expectEqual(counts.see, 1, 'pictures encoded');
    expect(again.usage.prompt_tokens_details.cached_tokens > usage.prompt_tokens - 4, `only ${again.usage.prompt_tokens_details.cached_tokens} of ${usage.prompt_tokens} tokens were known`);
    expect((await model.countTokens([conversation()])) >= 64, 'tokens of the picture are counted');
    // Another picture at the same place is another conversation.
    const other = await host.read(`${folder}/shapes-and-colours-64-4.png`);
    const changed = await answerTo(model, [{ role: 'user', content: [{ type: 'image', image: host.picture(other) }, text('What is this?')] }]);
    expectEqual(changed.text, 'A purple circle on a pink background.', 'another picture');
  },

  'several pictures and a recording in one message': async ({ host }) => {
    const { model, counts } = await loadNano(host);
    const pictures = await Promise.all(['shapes-and-colours-64-0.png', 'shapes-and-colours-63-1.png'].map(async (name) => ({ type: 'image', image: host.picture(await host.read(`${folder}/${name}`)) })));
    const sound = base64(await host.read(`${folder}/spoken-digits-2.wav`));
    const content = [...pictures, { type: 'input_audio', input_audio: { data: sound, format: 'wav' } }, text('What is this?')];
    const { usage } = await answerTo(model, [{ role: 'user', content }]);
    expect(usage.prompt_tokens > 64 + 63 + 41, `${usage.prompt_tokens} tokens of prompt`);
    expectEqual(`${counts.see} ${counts.hear}`, '2 1', 'encoded');
    const frames = pictures.map(({ image }, i) => ({ image, seconds: i }));
    const video = await answerTo(model, [{ role: 'user', content: [{ type: 'video', video: { frames } }, text('What is this?')] }]);
    expect(video.usage.prompt_tokens > 64 + 63, 'the frames of a video are in the prompt');
  },

  'encoding can be stopped, and broken files are told': async ({ host }) => {
    const { model } = await loadNano(host);
    const good = await messageOf(host, { picture: 'shapes-and-colours-64-0.png', question: 'What is this?' });
    const stop = new AbortController();
    await expectError(answerTo(model, [good], { signal: stop.signal, onMedia: ({ done }) => done > 0 && stop.abort() }), 'cancelled', /stopped/);
    const ask = (part) => answerTo(model, [{ role: 'user', content: [part, text('What is this?')] }]);
    const png = await host.read(`${folder}/shapes-and-colours-64-0.png`);
    const broken = new Blob([png.subarray(0, 60)], { type: 'image/png' });
    await expectError(ask({ type: 'image', image: broken }), ...(host.decodes ? ['invalid', /could not be decoded/] : ['unsupported', /Give pixels/]));
    await expectError(ask({ type: 'image', image: { data: new Uint8Array(10), width: 4, height: 4 } }), 'invalid', /3 or 4 bytes/);
    await expectError(ask({ type: 'image_url', image_url: { url: 'data:image/png;base64,###' } }), 'invalid', /base64/);
    await expectError(ask({ type: 'image', image: good.content[0].image, token_budget: 71 }), 'invalid', /70, 140/);
    await expectError(ask({ type: 'audio', audio: new Blob(['RIFF....WAVEfmt ']) }), 'invalid', /WAV file is damaged/);
    const short = writeWav({ samples: new Float32Array(10), rate: 16000, channels: 1 });
    await expectError(ask({ type: 'audio', audio: short }), 'invalid', /too short/);
    await expectError(ask({ type: 'file', file: {} }), 'invalid', /type is 'file'/);
    expectEqual((await answerTo(model, [good])).text, 'A red star on a grey background.', 'the engine goes on');
  },

  'a model without eyes says so': async ({ host }) => {
    const { engine } = await loadNano(host);
    const blind = await engine.load(await host.read('tests/data/tiny-e2b-Q4_K_M.gguf'));
    expect(!blind.sees && !blind.hears, 'it has neither');
    await expectError(answerTo(blind, [await messageOf(host, { picture: 'shapes-and-colours-64-0.png' })]), 'unsupported', /no eyes/);
    const able = await engine.load(await host.read('tests/data/tiny-e2b-Q4_K_M.gguf'), { projector: await host.read('tests/data/tiny-e2b-mmproj.gguf') });
    expect(able.sees && able.hears, 'with a projector it has both');
  },
};

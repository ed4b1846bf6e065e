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

async function load(host) {
  const port = await EngineHost.create({ wasm: host.wasm, gpu: host.gpu, waiting: host.waiting });
  const counts = { see: 0, hear: 0 }; // what the engine was asked to encode
  const call = port.call.bind(port);
  port.call = (method, ...rest) => {
    if (method in counts) counts[method]++;
    return call(method, ...rest);
  };
  const engine = await Engine.create(port);
  return { engine, counts, model: await engine.load(await host.read('models/nano.gguf'), { context: 1024 }) };
}
/** One for all checks: a software adapter looks at a picture for twenty seconds, and the engine remembers the last few. */
const loadNano = (host) => (host.nano ??= load(host));

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
  'encoding can be stopped': async ({ host }) => {
    const { model } = await loadNano(host);
    expect(model.sees && model.hears, 'nano has eyes and ears');
    const stop = new AbortController();
    const message = await messageOf(host, { picture: 'shapes-and-colours-64-0.png', question: 'What is this?' });
    await expectError(answerTo(model, [message], { signal: stop.signal, onMedia: ({ done }) => done > 0 && stop.abort() }), 'cancelled', /stopped/);
  },

  'pictures and recordings are answered as transformers does': async ({ host }) => {
    const { model } = await loadNano(host);
    const questions = await questionsOf(host);
    for (const name of ['shapes-and-colours-64-0.png', 'questions-about-pictures-64-19.png', 'spoken-digits-2.wav']) {
      const one = questions.find(({ picture, sound }) => (picture ?? sound) === name);
      expectEqual((await answerTo(model, [await messageOf(host, one)])).text, one.given, name);
    }
  },

  'a picture stays in the conversation and is encoded once': async ({ host }) => {
    const { model, counts } = await loadNano(host);
    const star = await host.read(`${folder}/shapes-and-colours-64-0.png`);
    // Each time another object with the same bytes, as from a database.
    const question = () => ({ role: 'user', content: [{ type: 'image', image: host.picture(star.slice()) }, text('Describe this image.')] });
    const { text: answer, usage } = await answerTo(model, [question()]);
    expect(/red star/.test(answer), answer);
    const before = counts.see;
    const progress = [];
    const next = [question(), { role: 'assistant', content: answer }, { role: 'user', content: 'What colour is the star?' }];
    const again = await answerTo(model, next, { onMedia: (one) => progress.push(one) });
    expect(counts.see === before && progress.length === 0, 'the picture was encoded again');
    const { cached_tokens: cached } = again.usage.prompt_tokens_details;
    expect(cached > usage.prompt_tokens - 4, `only ${cached} of ${usage.prompt_tokens} tokens were known`);
    expectEqual(await model.countTokens([question()]), usage.prompt_tokens, 'tokens, the picture\'s among them');
  },

  'several pictures, a recording and a video in a conversation': async ({ host }) => {
    const { model } = await loadNano(host);
    const pictures = await Promise.all(['shapes-and-colours-64-0.png', 'questions-about-pictures-64-19.png'].map(async (name) => ({ type: 'image', image: host.picture(await host.read(`${folder}/${name}`)) })));
    const sound = { type: 'input_audio', input_audio: { data: base64(await host.read(`${folder}/spoken-digits-2.wav`)), format: 'wav' } };
    const frames = pictures.map(({ image }, i) => ({ image, seconds: i }));
    const count = (...content) => model.countTokens([{ role: 'user', content }]);
    const none = await count(text(''));
    // 64 and 64 and 41 soft tokens, each with a token at both ends; frames also have their times.
    expectEqual(await count(...pictures, sound), none + 66 + 66 + 43, 'tokens');
    expect((await count({ type: 'video', video: { frames } })) > none + 132, 'tokens of a video');
    const { usage } = await answerTo(model, [{ role: 'user', content: [...pictures, sound, text('What is this?')] }]);
    expect(usage.completion_tokens > 0, 'no answer');
  },

  'broken pictures and recordings are told, and the engine goes on': async ({ host }) => {
    const { model } = await loadNano(host);
    const ask = (part) => answerTo(model, [{ role: 'user', content: [part, text('What is this?')] }]);
    const png = await host.read(`${folder}/shapes-and-colours-64-0.png`);
    const broken = new Blob([png.subarray(0, 20)], { type: 'image/png' });
    await expectError(ask({ type: 'image', image: broken }), ...(host.decodes ? ['invalid', /could not be decoded/] : ['unsupported', /Give pixels/]));
    await expectError(ask({ type: 'image', image: { data: new Uint8Array(10), width: 4, height: 4 } }), 'invalid', /3 or 4 bytes/);
    await expectError(ask({ type: 'image_url', image_url: { url: 'data:image/png;base64,###' } }), 'invalid', /base64/);
    await expectError(ask({ type: 'image', image: host.picture(png), token_budget: 71 }), 'invalid', /70, 140/);
    await expectError(ask({ type: 'audio', audio: new Blob(['RIFF....WAVEfmt ']) }), 'invalid', /WAV file of 16 bytes has no samples/);
    const short = writeWav({ samples: new Float32Array(10), rate: 16000, channels: 1 });
    await expectError(ask({ type: 'audio', audio: short }), 'invalid', /too short/);
    await expectError(ask({ type: 'file', file: {} }), 'invalid', /type is 'file'/);
    expectEqual((await ask({ type: 'image', image: host.picture(png) })).text, 'A red star on a grey background.', 'the engine goes on');
  },

  'a model without eyes says so, with a projector it has them': async ({ host }) => {
    const { engine } = await loadNano(host);
    const blind = await engine.load(await host.read('tests/data/tiny-e2b-Q4_K_M.gguf'));
    expect(!blind.sees && !blind.hears, 'it has neither');
    const message = await messageOf(host, { picture: 'shapes-and-colours-64-0.png' });
    await expectError(answerTo(blind, [message]), 'unsupported', /no eyes/);
    const able = await engine.load(await host.read('tests/data/tiny-e2b-Q4_K_M.gguf'), { projector: await host.read('tests/data/tiny-e2b-mmproj.gguf') });
    expect(able.sees && able.hears, 'it has both');
    await blind.unload();
    await able.unload();
  },
};

// The Vercel AI SDK's own functions on the engine in Node, with the embedded model; thoughts with a scripted one.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { generateText, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import { languageModel } from '../dist/ai_sdk.js';
import { createEngine } from '../dist/node.js';

let engine;
let loaded;
let model;
before(async () => {
  engine = await createEngine({ backend: 'cpu' }); // much faster than a GPU in software
  loaded = await engine.load({ kind: 'file', path: 'models/nano.gguf' }, { context: 512 });
  model = languageModel(loaded, { id: 'nano' });
});
after(() => engine.close());

const exact = { temperature: 0, maxRetries: 0 };
const question = 'What is 3 plus 4?';
const expected = async (content = question) => (await loaded.chat.completions.create({ messages: [{ role: 'user', content }], temperature: 0 })).choices[0].message.content;

test('generateText', async () => {
  const { text, finishReason, usage, warnings, providerMetadata } = await generateText({ model, prompt: question, ...exact });
  assert.match(text, /7/);
  assert.equal(text, await expected());
  assert.equal(finishReason, 'stop');
  assert.ok(usage.inputTokens > 5 && usage.outputTokens > 0 && usage.totalTokens === usage.inputTokens + usage.outputTokens, JSON.stringify(usage));
  assert.deepEqual(warnings, []);
  assert.ok(providerMetadata.bezel.timings.decode_tokens_per_second > 0);
});

test('streamText', async () => {
  const result = streamText({ model, prompt: question, ...exact });
  const pieces = [];
  for await (const piece of result.textStream) pieces.push(piece);
  assert.ok(pieces.length > 1, 'it came in pieces');
  assert.equal(pieces.join(''), await expected());
  assert.equal(await result.finishReason, 'stop');
  const usage = await result.usage;
  assert.equal(usage.cachedInputTokens + usage.inputTokenDetails.noCacheTokens, usage.inputTokens);
});

const setLight = tool({
  description: 'Switch a light',
  inputSchema: z.object({ room: z.string().describe('Room'), on: z.boolean().optional().describe('On or off') }),
  execute: async ({ room, on }) => ({ room, on }),
});
const light = { tools: { set_light: setLight }, prompt: 'Switch the bedroom light on.' };

test('a tool is called, and its result read', async () => {
  const { steps } = await generateText({ model, ...light, stopWhen: stepCountIs(2), ...exact });
  assert.equal(steps.length, 2);
  assert.equal(steps[0].finishReason, 'tool-calls');
  assert.deepEqual(steps[0].toolResults.map(({ toolName, output }) => [toolName, output]), [['set_light', { room: 'bedroom', on: true }]]);
  assert.equal(steps[1].finishReason, 'stop');
  assert.ok(steps[1].text.length > 0);
});

test('a tool is called while streaming', async () => {
  const calls = [];
  for await (const part of streamText({ model, ...light, ...exact }).fullStream) {
    assert.notEqual(part.type, 'error', String(part.error));
    if (part.type === 'tool-call') calls.push([part.toolName, part.input]);
  }
  assert.deepEqual(calls, [['set_light', { room: 'bedroom', on: true }]]);
});

test('what cannot be done is told', async () => {
  const { warnings } = await generateText({ model, ...light, toolChoice: 'required', ...exact });
  assert.deepEqual(warnings.map(({ type, feature }) => [type, feature]), [['unsupported', 'toolChoice required']]);
  const file = [{ type: 'file', data: new Uint8Array(4), mediaType: 'application/pdf' }];
  await assert.rejects(generateText({ model, messages: [{ role: 'user', content: file }], ...exact }), /application\/pdf/);
});

test('the length ends it, and so does the caller', async () => {
  const short = await generateText({ model, prompt: 'Tell me a story.', maxOutputTokens: 3, ...exact });
  assert.equal(short.finishReason, 'length');
  assert.equal(short.usage.outputTokens, 3);

  const stop = new AbortController();
  let aborted = false;
  const stream = streamText({ model, prompt: 'Tell me a story.', abortSignal: stop.signal, onAbort: () => (aborted = true), ...exact });
  let seen = 0;
  for await (const part of stream.fullStream) if (part.type === 'text-delta' && ++seen === 2) stop.abort();
  assert.ok(aborted && seen < 5, `${seen} pieces`);
  await assert.rejects(generateText({ model, prompt: question, abortSignal: AbortSignal.timeout(20), ...exact }), (error) => /Abort|Timeout/.test(error.name));
  assert.equal((await generateText({ model, prompt: question, ...exact })).text, await expected());
});

test('thoughts are told apart, and given back with their call', async () => {
  const requests = [];
  const usage = { prompt_tokens: 4, completion_tokens: 3, total_tokens: 7, prompt_tokens_details: { cached_tokens: 1 } };
  async function* chat(messages, options) {
    requests.push({ messages, options });
    yield { type: 'thinking', text: 'Hm' };
    yield { type: 'thinking', text: 'm.' };
    yield { type: 'text', text: 'Yes.' };
    if (requests.length === 1) yield { type: 'tool_call', call: { id: 'a', type: 'function', function: { name: 'set_light', arguments: '{"room":"hall"}' } } };
    yield { type: 'done', reason: requests.length === 1 ? 'tool_calls' : 'stop', usage };
  }
  const options = { model: languageModel({ chat }), ...light, system: 'Be brief.', stopWhen: stepCountIs(2), providerOptions: { bezel: { thinking: true } }, ...exact };
  const { reasoningText, text, totalUsage } = await generateText(options);
  assert.deepEqual([reasoningText, text, totalUsage.inputTokens, totalUsage.cachedInputTokens], ['Hmm.', 'Yes.', 8, 2]);
  assert.equal(requests[0].options.thinking, true);
  assert.deepEqual(requests[1].messages, [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: [{ type: 'text', text: light.prompt }] },
    { role: 'assistant', content: 'Yes.', reasoning_content: 'Hmm.', tool_calls: [{ id: 'a', type: 'function', function: { name: 'set_light', arguments: '{"room":"hall"}' } }] },
    { role: 'tool', tool_call_id: 'a', name: 'set_light', content: '{"room":"hall"}' },
  ]);

  requests.length = 1;
  const kinds = [];
  for await (const { type } of streamText(options).fullStream) if (/^(reasoning|text)-/.test(type)) kinds.push(type);
  assert.deepEqual(kinds, ['reasoning-start', 'reasoning-delta', 'reasoning-delta', 'reasoning-end', 'text-start', 'text-delta', 'text-end']);
});

// OpenAI's own client against `bezel serve`: what it accepts is the shape that others expect.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';

const bezel = process.env.BEZEL ?? 'build/native/bezel';
const folder = mkdtempSync(join(tmpdir(), 'bezel-openai-'));
const messages = [{ role: 'user', content: 'Why is the sky blue?' }];
const tools = [
  {
    type: 'function',
    function: {
      name: 'weather',
      description: 'The weather of a place',
      parameters: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
    },
  },
];
let server;
let client;

before(async () => {
  const model = join(folder, 'tiny.gguf');
  assert.equal(spawnSync(bezel, ['synth', 'tiny', '-o', model, '--quant', 'q8_0']).status, 0);
  server = spawn(bezel, ['serve', '-m', model, '--port', '0', '--backend', 'cpu'], { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: server.stdout })) {
    client = new OpenAI({ baseURL: `${line.match(/bezel is at (.*)/)[1]}/v1`, apiKey: 'none', maxRetries: 0 });
    break;
  }
});

after(async () => {
  const ended = new Promise((done) => server.on('exit', done));
  server.kill('SIGINT');
  assert.equal(await ended, 0);
  rmSync(folder, { recursive: true });
});

test('models are listed', async () => {
  const models = await client.models.list();
  assert.deepEqual(models.data.map((model) => model.id), ['tiny']);
});

test('a whole answer', async () => {
  const done = await client.chat.completions.create({
    model: 'tiny',
    messages,
    max_completion_tokens: 6,
    seed: 1,
    logprobs: true,
    top_logprobs: 2,
    tools,
  });
  assert.equal(typeof done.choices[0].message.content, 'string');
  assert.equal(done.usage.completion_tokens, 6);
  assert.ok(done.choices[0].logprobs.content.every((entry) => entry.top_logprobs.length === 2));
});

test('a streamed answer is the whole one', async () => {
  const request = { model: 'tiny', messages, max_tokens: 8, seed: 2, tools };
  const whole = await client.chat.completions.create(request);
  const stream = client.chat.completions.stream({ ...request, stream_options: { include_usage: true } });
  let text = '';
  stream.on('content', (delta) => (text += delta));
  const done = await stream.finalChatCompletion();
  assert.deepEqual(done.choices[0].message.content, whole.choices[0].message.content);
  assert.equal(text, whole.choices[0].message.content);
  assert.equal(done.choices[0].finish_reason, whole.choices[0].finish_reason);
  assert.equal(done.usage.total_tokens, whole.usage.total_tokens);
});

test('a conversation with a tool', async () => {
  const done = await client.chat.completions.create({
    model: 'tiny',
    messages: [
      ...messages,
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"place":"Rome"}' } }],
      },
      { role: 'tool', tool_call_id: 'call_1', content: 'sunny' },
    ],
    tools,
    max_tokens: 3,
  });
  assert.equal(done.usage.completion_tokens, 3);
});

test('errors have their classes', async () => {
  await assert.rejects(client.chat.completions.create({ model: 'gpt-4', messages }), OpenAI.NotFoundError);
  await assert.rejects(client.chat.completions.create({ model: 'tiny', messages, n: 2 }), (error) => {
    return error instanceof OpenAI.BadRequestError && error.message.includes("'n' is 2");
  });
});

test('an answer can be given up', async () => {
  const stream = await client.chat.completions.create({ model: 'tiny', messages, max_tokens: 4000, stream: true });
  for await (const chunk of stream) {
    assert.equal(chunk.object, 'chat.completion.chunk');
    break;
  }
  const status = async () => (await (await fetch(client.baseURL.replace('/v1', '/api/status'))).json()).models[0].requests;
  for (let i = 0; i < 100 && (await status()) > 0; ++i) await new Promise((done) => setTimeout(done, 50));
  assert.equal(await status(), 0);
});

// Conversations kept in files, with the embedded model in Node.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createEngine } from '../dist/node.js';

const states = mkdtempSync(join(tmpdir(), 'bezel-states-'));
after(() => rmSync(states, { recursive: true }));
const load = async (options = { states }) => (await createEngine({ backend: 'cpu', ...options })).load({ kind: 'file', path: 'models/nano.gguf' }, { context: 256 });
const messages = [{ role: 'user', content: 'Tell me a story.' }];
const ask = (model, more = []) => model.chat.completions.create({ messages: [...messages, ...more], temperature: 0, max_tokens: 40 });

test('a conversation goes on in another engine, with only what is new to read', async () => {
  const first = await load();
  const answer = await ask(first);
  const more = [answer.choices[0].message, { role: 'user', content: 'What is 3 plus 4?' }];
  const { tokens, bytes } = await first.saveState('chat/1');
  assert.equal(readFileSync(join(states, readdirSync(states)[0])).length, bytes);
  const expected = await ask(first, more);

  const second = await load();
  assert.equal(await second.restoreState('never saved'), 0);
  assert.equal(await second.restoreState('chat/1'), tokens);
  const again = await ask(second, more);
  assert.deepEqual(again.choices, expected.choices);
  const { prompt_tokens: prompt, prompt_tokens_details: { cached_tokens: cached } } = again.usage;
  assert.ok(cached >= tokens - 1 && prompt - cached < 24, `${cached} of ${prompt} tokens were there, ${tokens} saved`);
});

test('what is damaged is refused, and costs nothing but the computation', async () => {
  const model = await load();
  await ask(model);
  await model.saveState('broken');
  const path = join(states, 'broken.kv');
  const bytes = readFileSync(path);
  bytes[bytes.length >> 1] ^= 1;
  writeFileSync(path, bytes);
  const other = await load();
  await assert.rejects(other.restoreState('broken'), { kind: 'invalid', message: /damaged/ });
  assert.equal((await ask(other)).choices[0].message.content, (await ask(model)).choices[0].message.content);
  await other.dropState('broken');
  assert.equal(await other.restoreState('broken'), 0);
});

test('the latest are kept, and nothing of what was stopped', async () => {
  const model = await load();
  await assert.rejects(model.saveState('nothing'), { kind: 'not-found' });
  await ask(model);
  for (const name of ['a', 'b', 'c']) {
    await model.saveState(name, { keep: 2 });
    await new Promise((resolve) => setTimeout(resolve, 20)); // files tell them apart by time
  }
  assert.deepEqual(readdirSync(states).sort(), ['b.kv', 'c.kv']);
  await assert.rejects(model.saveState('stopped', { signal: AbortSignal.abort() }), { kind: 'cancelled' });
  assert.deepEqual(readdirSync(states).sort(), ['b.kv', 'c.kv']);
  await assert.rejects((await load({})).saveState('x'), { kind: 'unsupported' });
});

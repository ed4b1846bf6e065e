// Compiled, never run (`./test lint`): what is typed for OpenAI's own client takes a model in the browser in its place.

import OpenAI from 'openai';
import type { ChunkStream, Model, RemoteModel } from '../src/index.js';

type Params = OpenAI.Chat.ChatCompletionCreateParams;
type Whole = OpenAI.Chat.ChatCompletionCreateParamsNonStreaming;
type Streamed = OpenAI.Chat.ChatCompletionCreateParamsStreaming;
type Completion = OpenAI.Chat.ChatCompletion;
type Chunk = OpenAI.Chat.ChatCompletionChunk;

/** What a library asks of a client. Properties, not methods: TypeScript compares parameters of methods laxly. */
interface Client {
  chat: {
    completions: {
      create: {
        (body: Whole, options?: { signal?: AbortSignal }): PromiseLike<Completion>;
        (body: Streamed, options?: { signal?: AbortSignal }): PromiseLike<AsyncIterable<Chunk>>;
        (body: Params, options?: { signal?: AbortSignal }): PromiseLike<Completion | AsyncIterable<Chunk>>;
      };
    };
  };
}

declare const official: OpenAI;
declare const local: Model;
declare const remote: RemoteModel;

export const clients: Client[] = [official, local, remote];

/** Code for that API, whatever it runs on. */
export async function ask(client: Client, messages: OpenAI.Chat.ChatCompletionMessageParam[]): Promise<string> {
  const tools: OpenAI.Chat.ChatCompletionTool[] = [
    { type: 'function', function: { name: 'weather', parameters: { type: 'object', properties: {} }, strict: true } },
  ];
  const request = { model: 'gemma', messages, tools, max_tokens: 8, stop: ['\n'], seed: 1, logprobs: true, top_logprobs: 2 };
  const whole = await client.chat.completions.create(request);
  messages.push(whole.choices[0]!.message);
  let text = '';
  for await (const chunk of await client.chat.completions.create({ ...request, stream: true, stream_options: { include_usage: true } })) {
    text += chunk.choices[0]?.delta.content ?? '';
  }
  return text;
}
void ask(local, []);

/** Each overload by itself, with the official package's values going in and coming out. */
export async function overloads(whole: Whole, streamed: Streamed, either: Params): Promise<void> {
  const { completions } = local.chat;
  const done: Completion = await completions.create(whole);
  const usage: OpenAI.CompletionUsage | undefined = done.usage;
  const logprobs: OpenAI.Chat.ChatCompletionTokenLogprob[] = done.choices[0]?.logprobs?.content ?? [];
  const stream: ChunkStream = await completions.create(streamed, { signal: new AbortController().signal });
  stream.controller.abort();
  for await (const chunk of stream) {
    const same: Chunk = chunk;
    const delta: OpenAI.Chat.ChatCompletionChunk.Choice.Delta | undefined = same.choices[0]?.delta;
    void delta;
  }
  const any: Completion | AsyncIterable<Chunk> = await completions.create(either);
  // @ts-expect-error: a streamed answer is not a whole one
  const wrong: Completion = await completions.create(streamed);
  // @ts-expect-error: messages are needed
  void completions.create({ model: 'gemma' });
  void [usage, logprobs, any, wrong];
}

/** A conversation goes on with what came back, in bezel's own form too. */
export async function goOn(messages: OpenAI.Chat.ChatCompletionMessageParam[]): Promise<void> {
  for await (const part of local.chat(messages, { tools: [] })) void part;
  await local.countTokens(messages);
}

// The chat surface, the same for a model on this device and for one on a server.

import { BezelError } from './protocol.js';
import { PushStream } from './stream.js';
import type { ChatCompletion, ChatCompletionChunk, ChatMessage, ChatPart, ChatRequest, MediaProgress, ToolCall } from './openai.js';

export interface RequestOptions {
  signal?: AbortSignal | undefined;
  /** Told while pictures, recordings and videos are encoded. */
  onMedia?: ((progress: MediaProgress) => void) | undefined;
}

/** Runs one request, handing out chunks as they come. */
export type Complete = (
  request: ChatRequest,
  onChunk: (chunk: ChatCompletionChunk) => void,
  signal: AbortSignal,
  onMedia?: RequestOptions['onMedia'],
) => Promise<ChatCompletion>;

/** Like OpenAI's Stream: iterate it, or stop it through its controller. */
export interface ChunkStream extends AsyncIterable<ChatCompletionChunk> {
  controller: AbortController;
}

export interface Completions {
  create(request: ChatRequest & { stream: true }, options?: RequestOptions): Promise<ChunkStream>;
  create(request: ChatRequest & { stream?: false | null }, options?: RequestOptions): Promise<ChatCompletion>;
  create(request: ChatRequest, options?: RequestOptions): Promise<ChatCompletion | ChunkStream>;
}

export type ChatOptions = Omit<ChatRequest, 'messages' | 'stream'> & RequestOptions;

export interface Chat {
  /** The answer to a conversation, piece by piece. Leaving the loop stops it. */
  (messages: ChatMessage[], options?: ChatOptions): AsyncIterable<ChatPart>;
  completions: Completions;
}

function linked(signal: AbortSignal | undefined): AbortController {
  const controller = new AbortController();
  if (signal?.aborted) controller.abort();
  signal?.addEventListener('abort', () => controller.abort(), { once: true });
  return controller;
}

/** Runs it in the background; what it hands out can be iterated. */
function start(complete: Complete, request: ChatRequest, controller: AbortController, onMedia: RequestOptions['onMedia']): PushStream<ChatCompletionChunk> {
  const stream = new PushStream<ChatCompletionChunk>(() => controller.abort());
  complete(request, (chunk) => stream.push(chunk), controller.signal, onMedia).then(
    () => stream.end(),
    (error: unknown) => stream.fail(error),
  );
  return stream;
}

async function* parts(chunks: AsyncIterable<ChatCompletionChunk>): AsyncGenerator<ChatPart, void> {
  const calls: ToolCall[] = [];
  let done: Extract<ChatPart, { type: 'done' }> | undefined;
  for await (const chunk of chunks) {
    const choice = chunk.choices[0];
    const delta = choice?.delta;
    if (delta?.reasoning_content) yield { type: 'thinking', text: delta.reasoning_content };
    if (delta?.content) yield { type: 'text', text: delta.content };
    for (const piece of delta?.tool_calls ?? []) {
      // Servers may send a call in pieces; ours come whole.
      const call = (calls[piece.index] ??= { id: '', type: 'function', function: { name: '', arguments: '' } });
      if (piece.id) call.id = piece.id;
      if (piece.function?.name) call.function.name += piece.function.name;
      if (piece.function?.arguments) call.function.arguments += piece.function.arguments;
    }
    if (choice?.finish_reason) {
      const usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
      done = { type: 'done', reason: choice.finish_reason, usage, timings: undefined };
    }
    if (done && chunk.usage) done.usage = chunk.usage;
    if (done && chunk.timings) done.timings = chunk.timings;
  }
  for (const call of calls) yield { type: 'tool_call', call };
  if (!done) throw new BezelError('io', 'The answer broke off.');
  yield done;
}

export function makeChat(complete: Complete): Chat {
  const chat = (messages: ChatMessage[], { signal, onMedia, ...options }: ChatOptions = {}): AsyncIterable<ChatPart> => ({
    [Symbol.asyncIterator]: () =>
      parts(start(complete, { ...options, messages, stream: true, stream_options: { include_usage: true } }, linked(signal), onMedia)),
  });
  const create = async (request: ChatRequest, options: RequestOptions = {}): Promise<ChatCompletion | ChunkStream> => {
    const controller = linked(options.signal);
    if (!request.stream) return complete({ ...request, stream: false }, () => {}, controller.signal, options.onMedia);
    const stream = start(complete, request, controller, options.onMedia);
    return { controller, [Symbol.asyncIterator]: () => stream[Symbol.asyncIterator]() };
  };
  return Object.assign(chat, { completions: { create: create as Completions['create'] } });
}

// A model behind somebody's OpenAI-compatible address, for devices that are too small. Only used when asked for by
// name: a prompt never leaves the machine otherwise.

import { makeChat, type Chat, type Complete } from './chat.js';
import { inlined } from './inline.js';
import { BezelError } from './protocol.js';
import type { ChatCompletion, ChatCompletionChunk } from './openai.js';

export interface RemoteOptions {
  /** For example https://example.org/v1 */
  baseURL: string;
  model: string;
  apiKey?: string;
  headers?: Record<string, string>;
}

async function failure(response: Response): Promise<BezelError> {
  const text = await response.text();
  let message = text.slice(0, 500);
  try {
    message = (JSON.parse(text) as { error?: { message?: string } }).error?.message ?? message;
  } catch {
    // not JSON: show what there is
  }
  const kind = response.status === 404 ? 'not-found' : response.status < 500 ? 'invalid' : 'io';
  return new BezelError(kind, `${response.url} answered ${response.status}: ${message}`);
}

/** The data of server-sent events, as they come. */
async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      rest += decoder.decode(value, { stream: !done });
      const lines = rest.split(/\r\n|\n|\r/);
      rest = done ? '' : lines.pop()!;
      for (const line of lines) if (line.startsWith('data:')) yield line.slice(5).trim();
      if (done) return;
    }
  } finally {
    await reader.cancel();
  }
}

export class RemoteModel {
  readonly chat: Chat;

  constructor(private readonly options: RemoteOptions) {
    this.chat = makeChat(this.complete);
  }

  private readonly complete: Complete = async (request, onChunk, signal) => {
    const { baseURL, model, apiKey, headers } = this.options;
    const messages = await inlined(request.messages);
    let response: Response;
    try {
      response = await fetch(`${baseURL.replace(/\/+$/, '')}/chat/completions`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...(apiKey && { Authorization: `Bearer ${apiKey}` }), ...headers },
        body: JSON.stringify({ ...request, messages, model }),
        signal,
      });
    } catch (error) {
      if (signal.aborted) throw new BezelError('cancelled', 'The answer was stopped.');
      throw new BezelError('io', `${baseURL} could not be reached: ${(error as Error).message}.`);
    }
    if (!response.ok) throw await failure(response);
    if (!request.stream) return (await response.json()) as ChatCompletion;
    try {
      for await (const data of events(response.body!)) {
        if (data === '[DONE]') break;
        onChunk(JSON.parse(data) as ChatCompletionChunk);
      }
    } catch (error) {
      if (signal.aborted) throw new BezelError('cancelled', 'The answer was stopped.');
      throw new BezelError('io', `${baseURL} broke off: ${(error as Error).message}.`);
    }
    return undefined as never; // the chunks were everything
  };
}

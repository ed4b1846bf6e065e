// One answer, from the question to the last token: streams into a message that is shown often and kept every second.

import { BezelError, type ChatMessage, type ChatOptions, type ChatPart, type MediaProgress, type ModelInfo } from 'bezel';
import { contentOf } from './attachments';
import { messageOf } from './format';
import type { Perf } from './perf';
import type { Returning } from './returning';
import { nameOf, type Runtime } from './runtime';
import { defaults, settings, type Settings } from './settings';
import type { AnswerStats, Message } from './tree';

const showEvery = 50;
const keepEvery = 1000;

export interface Sink {
  show(message: Message): void;
  keep(message: Message): Promise<void>;
}

function requestFrom(before: Message[], draft: Message, model: ModelInfo): ChatMessage[] {
  const messages: ChatMessage[] = [];
  const system = settings.get().system.trim();
  if (system !== '') messages.push({ role: 'system', content: system });
  for (const message of before) messages.push({ role: message.role, content: contentOf(message, model) });
  if (draft.text !== '') messages.push({ role: 'assistant', content: draft.text });
  return messages;
}

/** Only what was changed: at the defaults, what the model's file recommends counts. */
function samplingFrom({ temperature, topP, topK }: Settings): Pick<ChatOptions, 'temperature' | 'top_p' | 'top_k'> {
  return {
    ...(temperature !== defaults.temperature && { temperature }),
    ...(topP !== defaults.topP && { top_p: topP }),
    ...(topK !== defaults.topK && { top_k: topK }),
  };
}

function activityOf({ kind, done, total }: MediaProgress): string {
  const doing = { picture: 'Looking at the picture', recording: 'Listening to the recording', video: 'Watching the video' }[kind];
  const percent = Math.round((100 * done) / total);
  return percent < 100 ? `${doing}… ${percent} %` : `${doing}…`; // loaded, and about to compute
}

export class Answering {
  private readonly abort = new AbortController();
  private finish = (): void => {};
  private readonly finished = new Promise<void>((resolve) => (this.finish = resolve));
  private shownAt = 0;
  private keptAt = 0;

  constructor(
    private readonly runtime: Runtime,
    private readonly returning: Returning,
    private readonly perf: Perf,
    private readonly sink: Sink,
  ) {}

  async run(before: Message[], draft: Message): Promise<void> {
    await this.write(before, draft);
    this.finish();
  }
  /** Also before it runs: then it ends as soon as it does. */
  async stop(): Promise<void> {
    this.abort.abort();
    await this.finished;
  }

  private async write(before: Message[], draft: Message): Promise<void> {
    const { signal } = this.abort;
    let message = draft;
    let stats: AnswerStats | undefined;
    this.perf.begin();
    try {
      const model = await this.runtime.ready(signal);
      await this.returning.before(model, draft.conversation);
      const { maxTokens, thinking } = settings.get();
      const began = performance.now();
      const parts = model.chat(requestFrom(before, draft, model.info), {
        signal,
        onMedia: (progress) => this.sink.show({ ...message, activity: activityOf(progress) }),
        ...samplingFrom(settings.get()),
        max_tokens: maxTokens,
        thinking: thinking && draft.text === '',
        ...(draft.text !== '' && { continue_final_message: true }),
      });
      for await (const part of parts) {
        message = this.add(message, part, began);
        if (part.type === 'done') stats = this.statsOf(part);
        else this.perf.tick();
        this.tell(message);
      }
      const cut = signal.aborted ? 'stopped' : message.state === 'length' ? 'length' : 'done';
      message = { ...message, state: cut, ...(stats && { stats }) };
      if (stats) this.returning.after(model, draft.conversation, stats.promptTokens + stats.tokens);
    } catch (error) {
      message = signal.aborted ? { ...message, state: 'stopped' } : { ...message, state: 'failed', error: messageOf(error) };
      if (error instanceof BezelError && error.kind === 'crashed') void this.runtime.restart();
    }
    this.perf.end(stats);
    this.sink.show(message);
    await this.sink.keep(message);
    void this.runtime.measure();
  }

  private add(message: Message, part: ChatPart, began: number): Message {
    switch (part.type) {
      case 'thinking':
        return { ...message, state: 'streaming', thinking: message.thinking + part.text };
      case 'text': {
        const thought = message.thinking !== '' && message.thinkingMs === undefined;
        return {
          ...message,
          state: 'streaming',
          text: message.text + part.text,
          ...(thought && { thinkingMs: performance.now() - began }),
        };
      }
      case 'tool_call':
        return { ...message, text: `${message.text}\n\n\`${part.call.function.name}(${part.call.function.arguments})\`\n` };
      case 'done':
        return part.reason === 'length' ? { ...message, state: 'length' } : message;
    }
  }

  private statsOf({ usage, timings }: Extract<ChatPart, { type: 'done' }>): AnswerStats {
    return {
      model: nameOf(this.runtime.store.get().choice),
      promptTokens: usage.prompt_tokens,
      cachedTokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
      tokens: usage.completion_tokens,
      firstTokenMs: timings?.time_to_first_token_ms ?? 0,
      prefillRate: timings?.prefill_tokens_per_second ?? 0,
      decodeRate: timings?.decode_tokens_per_second ?? 0,
    };
  }

  private tell(message: Message): void {
    const now = performance.now();
    if (now - this.shownAt >= showEvery) {
      this.shownAt = now;
      this.sink.show(message);
    }
    if (now - this.keptAt >= keepEvery) {
      this.keptAt = now;
      void this.sink.keep(message);
    }
  }
}

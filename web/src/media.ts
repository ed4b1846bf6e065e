// The pictures, recordings and videos of messages: decoded here, encoded by the model once, and named in what the
// engine is asked. A chat sends all of them again with every turn, so what a model has seen is remembered by content.

import { decodePicture, decodeSound, interleaved, shortened, stopIf, videoFrames, type Channels, type Pixels } from './decode.js';
import { type EnginePort } from './host.js';
import { BezelError, type EngineEvent, type ModelId } from './protocol.js';
import type { ChatMessage, ContentPart, MediaPart, MediaProgress } from './openai.js';
import { Sha256 } from './sha256.js';
import { type Recording } from './wav.js';

export interface MediaOptions {
  signal?: AbortSignal | undefined;
  onMedia?: ((progress: MediaProgress) => void) | undefined;
}

/** Messages as the engine reads them. `release` when it has. */
export interface Prepared {
  messages: ChatMessage[];
  release(): void;
}

/** Soft tokens that are remembered in all; a large model's take about 10 kB each. */
const mostTokens = 8192;
const mostFrames = 32;
const frameBudget = 70;

interface Known {
  part: { type: 'image' | 'audio' | 'video'; media?: number; frames?: { media: number; seconds: number }[] };
  ids: number[];
  tokens: number;
  users: number;
}

type Item =
  | { kind: 'picture'; source: Blob | Pixels | ImageBitmapSource; budget: number }
  | { kind: 'recording'; source: Blob | Channels | Recording }
  | { kind: 'video'; source: Extract<MediaPart, { type: 'video' }>['video']; budget: number; most: number };

const isPixels = (source: object): source is Pixels => 'data' in source && 'width' in source && 'height' in source;

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  } catch {
    throw new BezelError('invalid', 'A message holds data that is no base64.');
  }
}

/** Only what the caller wrote into a message is fetched, and by the caller's own page. */
async function fetchFile(address: string, signal: AbortSignal | undefined): Promise<Blob> {
  const data = /^data:([^,;]*)((?:;[^,;]*)*),/.exec(address);
  if (data) {
    const body = address.slice(data[0].length);
    const bytes = data[2]!.endsWith(';base64') ? fromBase64(body) : new TextEncoder().encode(decodeURIComponent(body));
    return new Blob([bytes], { type: data[1]! });
  }
  const shown = address.slice(0, 80);
  try {
    const response = await fetch(address, signal ? { signal } : {});
    if (!response.ok) throw new BezelError('not-found', `${shown} answered ${response.status}.`);
    return await response.blob();
  } catch (error) {
    if (error instanceof BezelError) throw error;
    if (signal?.aborted) throw new BezelError('cancelled', 'The request was stopped.');
    throw new BezelError('io', `${shown} could not be read: ${(error as Error).message}.`);
  }
}

const budgets = { auto: 0, low: 70, high: 560 };
const budgetOf = (given: { detail?: keyof typeof budgets; token_budget?: number }): number => given.token_budget ?? budgets[given.detail ?? 'auto'];

/** Messages may come from anywhere. */
function given<T>(value: T, type: 'object' | 'string', part: ContentPart): T {
  if (typeof value === type && value !== null) return value;
  throw new BezelError('invalid', `A part of the type ${part.type} does not hold what it should: see ContentPart.`);
}

async function itemOf(part: ContentPart, signal: AbortSignal | undefined): Promise<Item | undefined> {
  switch (part.type) {
    case 'image_url':
      return { kind: 'picture', source: await fetchFile(given(part.image_url?.url, 'string', part), signal), budget: budgetOf(part.image_url) };
    case 'image':
      return { kind: 'picture', source: given(part.image, 'object', part), budget: budgetOf(part) };
    case 'input_audio':
      return { kind: 'recording', source: new Blob([fromBase64(given(part.input_audio?.data, 'string', part))]) };
    case 'audio':
      return { kind: 'recording', source: given(part.audio, 'object', part) };
    case 'video':
      return { kind: 'video', source: given(part.video, 'object', part), budget: part.token_budget ?? frameBudget, most: Math.min(part.max_frames ?? mostFrames, 256) };
    default:
      return undefined;
  }
}

const bytesOf = (view: ArrayBufferView): Uint8Array => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
const names = new WeakMap<object, string>();
let unnamed = 0;

/** The same for the same content, as far as that can be told without decoding. */
async function contentOf(source: object): Promise<string> {
  const known = names.get(source);
  if (known) return known;
  // What can change is looked at every time.
  if (isPixels(source) && ArrayBuffer.isView(source.data)) return `${source.width} ${new Sha256().update(bytesOf(source.data)).digest()}`;
  if ('samples' in source) {
    const { samples, rate, channels } = source as Recording;
    return `${rate} ${channels} ${new Sha256().update(bytesOf(samples)).digest()}`;
  }
  if ('frames' in source) {
    const all = await Promise.all((source.frames as { image: object; seconds: number }[]).map(async ({ image, seconds }) => `${seconds} ${await contentOf(image)}`));
    return all.join(' ');
  }
  let name: string;
  if (source instanceof Blob) name = new Sha256().update(new Uint8Array(await source.arrayBuffer())).digest();
  else name = `object ${++unnamed}`;
  const constant = source instanceof Blob || (typeof ImageBitmap !== 'undefined' && source instanceof ImageBitmap) || 'getChannelData' in source;
  if (constant) names.set(source, name);
  return name;
}

async function pixelsOf(source: Blob | Pixels | ImageBitmapSource): Promise<Pixels> {
  if (!isPixels(source) || !ArrayBuffer.isView(source.data)) return decodePicture(source as ImageBitmapSource);
  return { ...source, data: new Uint8Array(source.data) }; // the caller keeps its own
}
async function samplesOf(source: Blob | Channels | Recording): Promise<Recording> {
  if (source instanceof Blob) return decodeSound(new Uint8Array(await source.arrayBuffer()));
  return 'samples' in source ? shortened(source) : interleaved(source);
}

export class MediaCache {
  /** By what they are, the one that was used last at the end. */
  private readonly known = new Map<string, Known>();
  private turn: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly port: EnginePort,
    private readonly model: () => ModelId,
  ) {}

  /** The model was loaded again: it has seen nothing yet. */
  reset(): void {
    this.known.clear();
  }

  /** One after another, as the model itself encodes. */
  prepare(messages: ChatMessage[], options: MediaOptions = {}): Promise<Prepared> {
    if (!messages.some(({ content }) => Array.isArray(content))) return Promise.resolve({ messages, release: () => {} });
    const mine = this.turn.then(() => this.replace(messages, options));
    this.turn = mine.catch(() => {});
    return mine;
  }

  private async replace(messages: ChatMessage[], options: MediaOptions): Promise<Prepared> {
    const used: Known[] = [];
    const release = (): void => {
      for (const one of used) one.users--;
      this.evict();
    };
    try {
      const out: ChatMessage[] = [];
      for (const message of messages) {
        if (!Array.isArray(message.content)) {
          out.push(message);
          continue;
        }
        const content: ContentPart[] = [];
        for (const part of message.content) {
          const item = await itemOf(part, options.signal);
          if (!item) {
            content.push(part);
            continue;
          }
          const known = await this.find(item, options);
          known.users++;
          used.push(known);
          content.push(known.part as unknown as ContentPart);
        }
        out.push({ ...message, content });
      }
      return { messages: out, release };
    } catch (error) {
      release();
      throw error;
    }
  }

  private async find(item: Item, options: MediaOptions): Promise<Known> {
    const key = `${item.kind} ${item.kind === 'recording' ? '' : item.budget} ${item.kind === 'video' ? item.most : ''} ${await contentOf(item.source)}`;
    const known = this.known.get(key) ?? (await this.encode(item, options));
    this.known.delete(key);
    this.known.set(key, known);
    return known;
  }

  private async encode(item: Item, { signal, onMedia }: MediaOptions): Promise<Known> {
    const tell = (step: number, steps: number) => (event: EngineEvent): void => {
      if (event.type === 'progress') onMedia?.({ kind: item.kind, done: step + event.done / Math.max(1, event.total), total: steps });
    };
    onMedia?.({ kind: item.kind, done: 0, total: 1 });
    switch (item.kind) {
      case 'picture': {
        const { media, tokens } = await this.see(await pixelsOf(item.source), item.budget, signal, tell(0, 1));
        return { part: { type: 'image', media }, ids: [media], tokens, users: 0 };
      }
      case 'recording': {
        const { samples, rate, channels } = await samplesOf(item.source);
        stopIf(signal); // a source that is handed over must be used
        const part = await this.port.addSource({ kind: 'bytes', bytes: bytesOf(samples), name: 'recording' }, true);
        const { media, tokens } = await this.port.call('hear', { model: this.model(), samples: part, rate, channels }, { signal, onEvent: tell(0, 1) });
        return { part: { type: 'audio', media }, ids: [media], tokens, users: 0 };
      }
      case 'video':
        return this.watch(item, tell, signal);
    }
  }

  private async watch(item: Extract<Item, { kind: 'video' }>, tell: (step: number, steps: number) => (event: EngineEvent) => void, signal: AbortSignal | undefined): Promise<Known> {
    const frames: { media: number; seconds: number }[] = [];
    let tokens = 0;
    const add = async (pixels: Pixels, seconds: number): Promise<void> => {
      const seen = await this.see(pixels, item.budget, signal, tell(frames.length, item.most));
      frames.push({ media: seen.media, seconds: Math.floor(seconds) });
      tokens += seen.tokens;
    };
    try {
      if ('frames' in item.source) for (const { image, seconds } of item.source.frames) await add(await pixelsOf(image), seconds);
      else for await (const { pixels, seconds } of videoFrames(item.source, item.most, signal)) await add(pixels, seconds);
    } catch (error) {
      this.forget(frames.map(({ media }) => media));
      throw error;
    }
    return { part: { type: 'video', frames }, ids: frames.map(({ media }) => media), tokens, users: 0 };
  }

  private async see({ data, width, height }: Pixels, budget: number, signal: AbortSignal | undefined, onEvent: (event: EngineEvent) => void): Promise<{ media: number; tokens: number }> {
    stopIf(signal);
    const pixels = await this.port.addSource({ kind: 'bytes', bytes: bytesOf(data), name: 'picture' }, true);
    return this.port.call('see', { model: this.model(), pixels, width, height, ...(budget && { budget }) }, { signal, onEvent });
  }

  private evict(): void {
    let tokens = [...this.known.values()].reduce((sum, one) => sum + one.tokens, 0);
    for (const [key, one] of this.known) {
      if (tokens <= mostTokens) return;
      if (one.users > 0) continue;
      this.known.delete(key);
      this.forget(one.ids);
      tokens -= one.tokens;
    }
  }
  private forget(ids: number[]): void {
    for (const media of ids) this.port.call('forget', { model: this.model(), media }).catch(() => {}); // with the model gone, so are they
  }
}

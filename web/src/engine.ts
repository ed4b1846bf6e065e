// The package's front: an engine, the models it loads, and chatting with them.

import { makeChat, type Chat, type Complete } from './chat.js';
import { fitOf, type Fit } from './fit.js';
import { type EnginePort } from './host.js';
import { type CallOptions } from './module.js';
import {
  BezelError,
  type DeviceId,
  type DeviceInfo,
  type DeviceOptions,
  type EngineEvent,
  type GenerateArguments,
  type GenerateResult,
  type Json,
  type KvType,
  type LoadArguments,
  type ModelId,
  type ModelInfo,
  type SessionId,
  type SourceSpec,
  type TuneReport,
} from './protocol.js';
import { MediaCache } from './media.js';
import type { ChatCompletion, ChatMessage, Tool } from './openai.js';
import { type SavedState } from './states.js';
import { storeClient, type StoreClient } from './store_client.js';

/** A model's file: an address, a File or other Blob, bytes, a path (Node), a name in Ollama's store, or a description. */
export type ModelSource =
  | string
  | URL
  | Blob
  | ArrayBuffer
  | Uint8Array
  | SourceSpec
  | { ollama: string; /** Where `bezel serve` is; this page's own address otherwise. */ server?: string };

export interface LoadOptions {
  onProgress?: (done: number, total: number) => void;
  signal?: AbortSignal;
  /** Tokens that a conversation may have: more needs more memory. */
  context?: number;
  /** How keys and values are kept: f32; f16, half the memory; q8, little more than a quarter. f32 unless said. */
  kv?: KvType;
  /** Tokens of one forward pass at most. */
  batch?: number;
  /** A file of encoders (mmproj), for a model whose own file has none. */
  projector?: ModelSource;
  /** What a model store knows beside the file; `bezel serve` tells it for Ollama's. */
  hints?: LoadHints;
}

export type LoadHints = Pick<LoadArguments, 'renderer' | 'modelName' | 'parameterSize' | 'ollamaParams'>;

export interface EngineOptions {
  /** Features and limits to do without. */
  device?: DeviceOptions;
  /** `auto` computes on the CPU where there is no usable GPU, and `engine.cpuReason` says why. */
  backend?: 'auto' | 'gpu' | 'cpu';
}

interface Resolved {
  specs: SourceSpec[];
  projector?: SourceSpec;
  hints: LoadHints;
}

interface ServedModel {
  name: string;
  url: string;
  /** Of a model in several files, all of them. */
  parts?: { url: string }[];
  projector?: { url: string };
  hints?: LoadHints;
}

async function resolve(source: ModelSource): Promise<Resolved> {
  const one = (spec: SourceSpec): Resolved => ({ specs: [spec], hints: {} });
  if (typeof source === 'string' || source instanceof URL) {
    return one({ kind: 'url', url: new URL(source, globalThis.location?.href).href });
  }
  if (source instanceof Blob) return one({ kind: 'blob', blob: source, name: (source as File).name ?? 'blob' });
  if (source instanceof ArrayBuffer) return one({ kind: 'bytes', bytes: new Uint8Array(source), name: 'memory' });
  if (source instanceof Uint8Array) return one({ kind: 'bytes', bytes: source, name: 'memory' });
  if ('kind' in source) return one(source);
  const server = new URL(source.server ?? '/', globalThis.location?.href);
  const response = await fetch(new URL('api/models', server)).catch((error: Error) => {
    throw new BezelError('io', `No bezel serve answers at ${server.href}: ${error.message}.`);
  });
  if (!response.ok) throw new BezelError('io', `${response.url} answered ${response.status}: is it bezel serve?`);
  const { models } = (await response.json()) as { models: ServedModel[] };
  const found = models.find(({ name }) => name === source.ollama || name === `${source.ollama}:latest`);
  if (!found) {
    const names = models.map(({ name }) => name).join(', ');
    throw new BezelError('not-found', `${server.href} has no model ${source.ollama}. It has: ${names || 'none'}.`);
  }
  const served = ({ url }: { url: string }): SourceSpec => ({ kind: 'url', url: new URL(url, server).href });
  return {
    specs: (found.parts ?? [found]).map(served),
    ...(found.projector && { projector: served(found.projector) }),
    hints: { modelName: found.name, ...found.hints },
  };
}

export class Engine {
  private device: DeviceId | undefined;
  /** The GPU; undefined where the CPU computes. */
  deviceInfo: DeviceInfo | undefined;
  /** Why the CPU computes, in a sentence for people. */
  cpuReason: string | undefined;

  /** Models kept on this device. One of them is loaded as `{ kind: 'stored', key }`. */
  readonly store: StoreClient;

  private constructor(
    private readonly port: EnginePort,
    private readonly options: EngineOptions,
  ) {
    this.store = storeClient(port.callStore);
  }

  static async create(port: EnginePort, options: EngineOptions = {}): Promise<Engine> {
    const engine = new Engine(port, options);
    try {
      await engine.openDevice();
    } catch (error) {
      port.close();
      throw error;
    }
    return engine;
  }

  private async openDevice(): Promise<void> {
    const { backend = 'auto', device: wanted = {} } = this.options;
    if (backend === 'cpu') {
      this.cpuReason = 'The CPU was asked for.';
      return;
    }
    try {
      const { device, info } = await this.port.call('open_device', wanted);
      this.device = device;
      this.deviceInfo = info;
    } catch (error) {
      if (backend === 'gpu' || !(error instanceof BezelError)) throw error;
      this.cpuReason = error.message;
    }
  }

  private reopening: Promise<void> | undefined;
  /** Opens the GPU anew after it was lost. Models and sessions on the old one are gone. */
  reopenDevice(): Promise<void> {
    this.reopening ??= (async () => {
      if (this.device !== undefined) await this.port.call('close_device', { device: this.device });
      this.device = undefined;
      await this.openDevice();
    })().finally(() => (this.reopening = undefined));
    return this.reopening;
  }

  async load(source: ModelSource, options: LoadOptions = {}): Promise<Model> {
    const from = await resolve(source);
    const projector = options.projector ? (await resolve(options.projector)).specs[0] : from.projector;
    const open = async (): Promise<ModelInfo> => {
      const parts = await Promise.all(from.specs.map((spec) => this.port.addSource(spec)));
      const args: LoadArguments = { parts, ...from.hints, ...options.hints };
      if (projector) args.projector = await this.port.addSource(projector);
      if (this.device !== undefined) args.device = this.device;
      if (options.kv !== undefined) args.kv = options.kv;
      if (options.batch !== undefined) args.batch = options.batch;
      const onEvent = (event: EngineEvent): void => {
        if (event.type === 'progress') options.onProgress?.(event.done, event.total);
      };
      return this.port.call('load', args, { onEvent, signal: options.signal });
    };
    return new Model(this, this.port, await open(), open, options.context);
  }

  /** Will it fit? Reads the file's header only. */
  async probe(source: ModelSource): Promise<Fit> {
    const { specs } = await resolve(source);
    const parts = await Promise.all(specs.map((spec) => this.port.addSource(spec)));
    const cost = await this.port.call('probe', { parts });
    const storage = await globalThis.navigator?.storage?.estimate?.();
    return fitOf(cost, parts.reduce((sum, part) => sum + part.size, 0), this.deviceInfo, storage);
  }

  async memory(): Promise<{ gpu: number; heap: number }> {
    const { gpu } = await this.port.call('memory', {});
    return { gpu, heap: await this.port.heapBytes() };
  }

  close(): void {
    this.port.close();
  }
}

export class Model {
  readonly chat: Chat;
  private readonly media: MediaCache;

  constructor(
    private readonly engine: Engine,
    private readonly port: EnginePort,
    private loaded: ModelInfo,
    private readonly reload: () => Promise<ModelInfo>,
    private readonly context: number | undefined,
  ) {
    this.chat = makeChat(this.complete);
    this.media = new MediaCache(port, () => this.id);
  }

  /** Whether messages may hold pictures and videos. */
  get sees(): boolean {
    return this.loaded.sees;
  }
  /** Whether they may hold recordings. */
  get hears(): boolean {
    return this.loaded.hears;
  }
  get info(): ModelInfo {
    return this.loaded;
  }
  private get id(): ModelId {
    return this.loaded.model;
  }

  async tokenize(text: string): Promise<number[]> {
    return (await this.port.call('tokenize', { model: this.id, text })).tokens;
  }
  async detokenize(tokens: number[]): Promise<string> {
    return (await this.port.call('detokenize', { model: this.id, tokens })).text;
  }
  /** The prompt that a conversation becomes, as text and as tokens. */
  async render(messages: ChatMessage[], options: { tools?: Tool[]; thinking?: boolean } = {}): Promise<{ text: string; tokens: number[]; inThought: boolean }> {
    const { tools, thinking } = options;
    const prepared = await this.media.prepare(messages);
    return this.port
      .call('render', {
        model: this.id,
        messages: prepared.messages as unknown as Json,
        ...(tools && { tools: tools as unknown as Json }),
        ...(thinking !== undefined && { thinking }),
      })
      .finally(prepared.release);
  }
  async countTokens(text: string | ChatMessage[]): Promise<number> {
    return typeof text === 'string' ? (await this.tokenize(text)).length : (await this.render(text)).tokens.length;
  }

  async openSession(context = this.context): Promise<Session> {
    const { session, bytes } = await this.port.call('open_session', { model: this.id, ...(context && { context }) });
    return new Session(this.port, session, bytes);
  }

  /**
   * Keeps what the last answered conversation has computed under a name, for restoreState() after a reload. Of all
   * that are kept the `keep` latest stay.
   */
  saveState(key: string, { keep = 8, signal }: { keep?: number; signal?: AbortSignal } = {}): Promise<SavedState> {
    return this.port.callState({ action: 'save', model: this.id, key, keep }, { signal });
  }
  /**
   * Takes it over, so that the conversation goes on without computing its beginning again; gives the number of tokens,
   * 0 where nothing is kept under the name. What is damaged, or of another model, is an error: drop it.
   */
  async restoreState(key: string): Promise<number> {
    return (await this.port.callState({ action: 'restore', model: this.id, key, context: this.context })).tokens;
  }
  async dropState(key: string): Promise<void> {
    await this.port.callState({ action: 'drop', key });
  }

  /**
   * Finds the fastest kernels for this model on this GPU, in seconds to a minute, and keeps them: later loads use them, and so
   * do new conversations. `seconds` bounds how long further kernels are tried, of decoding and of prompts each. Needs a GPU
   * with timestamps; a software adapter only when asked for.
   */
  tune(options: { software?: boolean; seconds?: number; signal?: AbortSignal } = {}): Promise<TuneReport> {
    const { signal, ...wanted } = options;
    return this.port.call('tune', { model: this.id, ...wanted }, { signal });
  }

  async unload(): Promise<void> {
    await this.port.call('unload', { model: this.id });
  }

  /**
   * When the GPU is lost within an answer, it is opened again, the model reloaded and the same request run again
   * with the same seed: its tokens are the same, so what was already handed out is left out the second time.
   */
  private readonly complete: Complete = async (request, onChunk, signal, onMedia) => {
    const seeded = { ...request, seed: request.seed ?? Math.floor(Math.random() * 2 ** 31) };
    let given = 0;
    const run = async (): Promise<ChatCompletion> => {
      let seen = 0;
      const onEvent = (event: EngineEvent): void => {
        if (event.type !== 'chunk' || ++seen <= given) return;
        given = seen;
        onChunk(event.chunk);
      };
      const context = this.context === undefined ? {} : { context: this.context };
      const { messages, release } = await this.media.prepare(seeded.messages, { signal, onMedia });
      return this.port.call('complete', { model: this.id, request: { ...seeded, messages }, ...context }, { onEvent, signal }).finally(release);
    };
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof BezelError) || error.kind !== 'device-lost') throw error;
    }
    await this.port.call('unload', { model: this.id }).catch(() => {});
    await this.engine.reopenDevice();
    this.loaded = await this.reload();
    this.media.reset();
    return run();
  };
}

/** The tokens of one conversation and their keys and values; for those who want to do it themselves. */
export class Session {
  constructor(
    private readonly port: EnginePort,
    private readonly id: SessionId,
    readonly bytes: number,
  ) {}

  /** Appends tokens; gives the logits of the last one. */
  async feed(tokens: number[], options?: CallOptions): Promise<Float32Array> {
    return (await this.port.call('feed', { session: this.id, tokens }, options)).numbers;
  }
  async rewind(count: number): Promise<void> {
    await this.port.call('rewind', { session: this.id, count });
  }
  generate(options: Omit<GenerateArguments, 'session'>, call?: CallOptions): Promise<GenerateResult> {
    return this.port.call('generate', { session: this.id, ...options }, call);
  }
  async close(): Promise<void> {
    await this.port.call('close_session', { session: this.id });
  }
}

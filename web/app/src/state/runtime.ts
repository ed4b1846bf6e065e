// The engine and the model that answers: starting, loading, changing the model, recovering.

import type { DeviceInfo, LoadHints, ModelInfo, ModelSource } from 'bezel';
import type { EngineLike, ModelLike, StartEngine } from '../engine/like';
import { messageOf } from './format';
import type { Perf } from './perf';
import { recall, remember } from './settings';
import { Store } from './store';

/** Which model to use. A file from disk lasts as long as the page: only the store keeps files. */
export type Choice =
  | { kind: 'embedded' }
  | { kind: 'stored'; key: string; name: string; hints?: LoadHints }
  | { kind: 'served'; name: string }
  | { kind: 'url'; url: string }
  | { kind: 'file'; file: File };

export interface RuntimeState {
  phase: 'starting' | 'loading' | 'ready' | 'failed';
  choice: Choice;
  progress: { done: number; total: number } | null;
  error: string | null;
  device: DeviceInfo | undefined;
  cpuReason: string | undefined;
  model: ModelInfo | null;
}

const key = 'bezel.model';
export const embedded: Choice = { kind: 'embedded' };

export function nameOf(choice: Choice): string {
  switch (choice.kind) {
    case 'embedded':
      return 'Nano';
    case 'file':
      return choice.file.name.replace(/\.gguf$/, '');
    case 'url':
      return (choice.url.split(/[?#]/)[0]!.split('/').pop() || choice.url).replace(/\.gguf$/, '');
    default:
      return choice.name;
  }
}

const hintsKey = 'bezel.hints';
const allHints = (): Record<string, LoadHints> => (recall(hintsKey) ?? {}) as Record<string, LoadHints>;
/** What was known of a stored model where it came from. */
export function hintsOf(stored: string): { hints?: LoadHints } {
  const hints = allHints()[stored];
  return hints ? { hints } : {};
}
export function rememberHints(stored: string, hints: LoadHints): void {
  remember(hintsKey, { ...allHints(), [stored]: hints });
}

function readChoice(stored: unknown): Choice {
  const given = (typeof stored === 'object' && stored !== null ? stored : {}) as Record<string, unknown>;
  const { kind, name, url } = given;
  if (kind === 'stored' && typeof given.key === 'string' && typeof name === 'string') return { kind, key: given.key, name, ...hintsOf(given.key) };
  if (kind === 'served' && typeof name === 'string') return { kind, name };
  if (kind === 'url' && typeof url === 'string') return { kind, url };
  return embedded;
}

/** The embedded model is read whole: the service worker that keeps it for offline use does not answer ranges. */
async function fetchEmbedded(onProgress: (done: number, total: number) => void, signal: AbortSignal): Promise<Blob> {
  const response = await fetch(new URL('models/nano.gguf', document.baseURI), { signal }).catch((error: unknown) => {
    throw new Error(`The embedded model could not be loaded: ${messageOf(error)}. Connect once, then it works offline.`);
  });
  const isPage = response.headers.get('Content-Type')?.startsWith('text/html');
  if (!response.ok || isPage) {
    throw new Error('This copy of the app comes without an embedded model. Choose one: from Ollama, from an address or from a file.');
  }
  const total = Number(response.headers.get('Content-Length') ?? 0);
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  const reader = response.body!.getReader();
  for (let done = 0; ; ) {
    const piece = await reader.read();
    if (piece.done) return new Blob(pieces);
    pieces.push(piece.value);
    done += piece.value.length;
    onProgress(done, Math.max(total, done));
  }
}

export function sourceOf(choice: Exclude<Choice, { kind: 'embedded' }>): ModelSource {
  switch (choice.kind) {
    case 'stored':
      return { kind: 'stored', key: choice.key };
    case 'served':
      return { ollama: choice.name, server: document.baseURI };
    case 'url':
      return choice.url;
    case 'file':
      return choice.file;
  }
}

export class Runtime {
  readonly store = new Store<RuntimeState>({
    phase: 'starting',
    choice: readChoice(recall(key)),
    progress: null,
    error: null,
    device: undefined,
    cpuReason: undefined,
    model: null,
  });
  private engine: Promise<EngineLike> | undefined;
  private model: ModelLike | undefined;
  private loading: AbortController | undefined;

  constructor(
    private readonly startEngine: StartEngine,
    private readonly perf: Perf,
  ) {}

  /** The engine, started where it is not. */
  open(): Promise<EngineLike> {
    this.engine ??= this.startEngine().then(
      (engine) => {
        this.store.set({ device: engine.deviceInfo, cpuReason: engine.cpuReason });
        return engine;
      },
      (error: unknown) => {
        this.engine = undefined;
        throw error;
      },
    );
    return this.engine;
  }

  async load(choice: Choice): Promise<void> {
    this.loading?.abort();
    const stop = (this.loading = new AbortController());
    const onProgress = (done: number, total: number): void => {
      if (!stop.signal.aborted) this.store.set({ progress: { done, total } });
    };
    this.store.set({ phase: this.engine ? 'loading' : 'starting', choice, progress: null, error: null, model: null });
    try {
      const engine = await this.open();
      await this.model?.unload();
      this.model = undefined;
      if (stop.signal.aborted) return;
      this.store.set({ phase: 'loading' });
      const source = choice.kind === 'embedded' ? await fetchEmbedded(onProgress, stop.signal) : sourceOf(choice);
      const { settings } = await engine.probe(source);
      const hints = choice.kind === 'stored' && choice.hints ? { hints: choice.hints } : {};
      const model = await engine.load(source, { ...settings, ...hints, onProgress, signal: stop.signal });
      if (stop.signal.aborted) return void model.unload();
      this.model = model;
      this.store.set({ phase: 'ready', model: model.info, progress: null, device: engine.deviceInfo, cpuReason: engine.cpuReason });
      if (choice.kind !== 'file') remember(key, choice);
      await this.measure();
    } catch (error) {
      if (!stop.signal.aborted) this.store.set({ phase: 'failed', error: messageOf(error), progress: null });
    }
  }

  /** Ends loading; there is no model then until one is chosen. */
  stopLoading(): void {
    if (this.store.get().phase === 'ready') return;
    this.loading?.abort();
    this.store.set({ phase: 'failed', progress: null, error: 'Loading was stopped. Load it again, or choose another model.' });
  }

  retry(): Promise<void> {
    return this.load(this.store.get().choice);
  }

  /** A new engine: the old one crashed, and nothing of it can be used any more. */
  async restart(): Promise<void> {
    const old = this.engine;
    this.engine = undefined;
    this.model = undefined;
    void old?.then((engine) => engine.close()).catch(() => {});
    await this.retry();
  }

  /** The model, where one is loaded. */
  get loaded(): ModelLike | undefined {
    return this.model;
  }

  /** The model, as soon as it is loaded. */
  ready(signal: AbortSignal): Promise<ModelLike> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const { phase, error } = this.store.get();
        if (signal.aborted) finish(() => reject(new Error('stopped')));
        else if (phase === 'ready') finish(() => resolve(this.model!));
        else if (phase === 'failed') finish(() => reject(new Error(error ?? 'No model is loaded.')));
      };
      const unsubscribe = this.store.subscribe(look);
      const finish = (then: () => void): void => {
        unsubscribe();
        signal.removeEventListener('abort', look);
        then();
      };
      signal.addEventListener('abort', look);
      look();
    });
  }

  async measure(): Promise<void> {
    const engine = await this.engine;
    if (engine) this.perf.store.set({ memory: await engine.memory().catch(() => null) });
  }
}

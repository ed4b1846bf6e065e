// The model manager: what is there, what could be, and how downloads go.

import type { Fit, JobOptions, LoadHints, StoredModel, StoreProgress } from 'bezel';
import { messageOf } from './format';
import { nameOf, rememberHints, sourceOf, type Choice, type Runtime } from './runtime';
import { Store } from './store';

/** A model that `bezel serve` offers from Ollama's store. */
export interface ServedModel {
  name: string;
  url: string;
  size?: number;
  digest?: string;
  quantization?: string;
  /** Of a model in several files; the store keeps single ones. */
  parts?: unknown[];
  hints?: LoadHints;
}

export interface Job {
  name: string;
  progress: StoreProgress | null;
  state: 'running' | 'paused' | 'failed';
  error: string | null;
}

export type Candidate = Exclude<Choice, { kind: 'embedded' }>;
export interface Probe {
  candidate: Candidate;
  fit: Fit | null;
  error: string | null;
}

export interface ModelsState {
  stored: StoredModel[];
  quota: { usage: number; quota: number; persisted: boolean } | null;
  /** Why nothing can be stored. */
  storeError: string | null;
  served: ServedModel[] | null;
  /** By the model's address, or the name of a file. */
  jobs: Readonly<Record<string, Job>>;
  probe: Probe | null;
}

/** Where the bytes of a candidate come from, and the name of its job. */
const jobKey = (candidate: Candidate, served: ServedModel[] | null): string => {
  switch (candidate.kind) {
    case 'url':
      return candidate.url;
    case 'file':
      return candidate.file.name;
    case 'stored':
      return candidate.key;
    case 'served': {
      const found = served?.find(({ name }) => name === candidate.name);
      return found ? new URL(found.url, document.baseURI).href : candidate.name;
    }
  }
};

function readServed(answer: unknown): ServedModel[] {
  const { models } = (answer ?? {}) as { models?: unknown };
  if (!Array.isArray(models)) return [];
  return models.filter((model): model is ServedModel => typeof model?.name === 'string' && typeof model?.url === 'string');
}

/** `bezel serve` may have served this page; any other server just does not know the address. */
async function lookAtServed(): Promise<ServedModel[] | null> {
  try {
    const response = await fetch(new URL('api/models', document.baseURI), { signal: AbortSignal.timeout(2000) });
    const json = response.headers.get('Content-Type')?.includes('json');
    return response.ok && json ? readServed(await response.json()) : null;
  } catch {
    return null;
  }
}

export class Models {
  readonly store = new Store<ModelsState>({ stored: [], quota: null, storeError: null, served: null, jobs: {}, probe: null });
  private readonly stops = new Map<string, AbortController>();
  private readonly running = new Map<string, Promise<void>>();
  private readonly begin = new Map<string, (options: JobOptions) => Promise<StoredModel>>();

  constructor(private readonly runtime: Runtime) {}

  /** All at once: what appeared piece by piece would move buttons away from a hand that is about to press them. */
  async refresh(): Promise<void> {
    const served = await lookAtServed();
    this.store.set({ ...(await this.lookAtStored()), served });
  }

  private async refreshStored(): Promise<void> {
    this.store.set(await this.lookAtStored());
  }
  private async lookAtStored(): Promise<Partial<ModelsState>> {
    try {
      const { store } = await this.runtime.open();
      return { stored: await store.list(), quota: await store.quota(), storeError: null };
    } catch (error) {
      return { storeError: messageOf(error) };
    }
  }

  /** Will it fit this device? Reads the file's header only. */
  async check(candidate: Candidate): Promise<void> {
    this.store.set({ probe: { candidate, fit: null, error: null } });
    const done = (probe: Probe): void => {
      if (this.store.get().probe?.candidate === candidate) this.store.set({ probe });
    };
    try {
      const engine = await this.runtime.open();
      done({ candidate, fit: await engine.probe(sourceOf(candidate)), error: null });
    } catch (error) {
      done({ candidate, fit: null, error: messageOf(error) });
    }
  }
  forgetProbe(): void {
    this.store.set({ probe: null });
  }

  use(choice: Choice): void {
    this.forgetProbe();
    void this.runtime.load(choice);
  }

  private servedAs(candidate: Candidate): ServedModel | undefined {
    return candidate.kind === 'served' ? this.store.get().served?.find(({ name }) => name === candidate.name) : undefined;
  }
  /** The store keeps single files. */
  canKeep(candidate: Candidate): boolean {
    return candidate.kind !== 'stored' && (this.servedAs(candidate)?.parts?.length ?? 1) === 1;
  }

  /** Keeps a copy on this device. */
  async keep(candidate: Candidate): Promise<void> {
    const key = jobKey(candidate, this.store.get().served);
    const engine = await this.runtime.open();
    const name = nameOf(candidate);
    if (candidate.kind === 'file') this.begin.set(key, (options) => engine.store.importFile(candidate.file, options));
    else {
      const { digest, hints } = this.servedAs(candidate) ?? {};
      this.begin.set(key, async (options) => {
        const model = await engine.store.download({ url: key, name, digest }, options);
        rememberHints(model.key, { modelName: name, ...hints });
        return model;
      });
    }
    this.forgetProbe();
    void navigator.storage?.persist?.();
    await this.run(key, name);
  }

  /** Goes on with a download that was paused, failed, or interrupted by the end of a page. */
  async resume(key: string, model?: StoredModel): Promise<void> {
    const served = model && this.store.get().served?.find(({ url }) => new URL(url, document.baseURI).href === key);
    if (served) return this.keep({ kind: 'served', name: served.name }); // what is known beside the file comes with it
    const engine = await this.runtime.open();
    if (model) this.begin.set(key, (options) => engine.store.download({ url: model.url, name: model.name }, options));
    const name = model?.name ?? this.store.get().jobs[key]?.name;
    if (name !== undefined) await this.run(key, name);
  }
  pause(key: string): void {
    this.stops.get(key)?.abort();
  }

  /** Stops a download and deletes what has arrived. */
  async cancel(key: string): Promise<void> {
    this.pause(key);
    await this.running.get(key);
    this.dropJob(key);
    const model = this.store.get().stored.find(({ url, name, state }) => state === 'partial' && (url === key || name === key));
    if (model) await this.remove(model);
  }

  async remove(model: StoredModel): Promise<void> {
    this.pause(model.url);
    try {
      await (await this.runtime.open()).store.delete(model.key);
      this.dropJob(model.url);
    } catch (error) {
      this.store.set({ storeError: messageOf(error) });
    }
    await this.refreshStored();
  }

  private run(key: string, name: string): Promise<void> {
    const already = this.stops.has(key) && this.running.get(key);
    if (already) return already;
    const job = this.work(key, name);
    this.running.set(key, job);
    return job;
  }

  private async work(key: string, name: string): Promise<void> {
    const start = this.begin.get(key);
    if (!start) return;
    const stop = new AbortController();
    this.stops.set(key, stop);
    const update = (change: Partial<Job>): void => {
      const job = this.store.get().jobs[key] ?? { name, progress: null, state: 'running', error: null };
      this.store.set({ jobs: { ...this.store.get().jobs, [key]: { ...job, ...change } } });
    };
    update({ state: 'running', error: null });
    try {
      await start({ signal: stop.signal, onProgress: (progress) => update({ progress }) });
      this.dropJob(key);
    } catch (error) {
      if (stop.signal.aborted) update({ state: 'paused' });
      else update({ state: 'failed', error: messageOf(error) });
    }
    this.stops.delete(key);
    await this.refreshStored();
  }

  private dropJob(key: string): void {
    const { [key]: _, ...jobs } = this.store.get().jobs;
    this.store.set({ jobs });
  }
}

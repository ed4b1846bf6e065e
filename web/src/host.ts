// The engine where it runs: in a worker, or in the caller's own thread (Node, tests). Owns the module and turns
// descriptions of sources into open ones.

import { EngineModule, type CallOptions, type ModuleOptions } from './module.js';
import { BezelError, type LoadArguments, type Method, type Methods, type Part, type SourceSpec } from './protocol.js';
import { blobSource, bytesSource, urlSource, type Source } from './sources.js';
import { opfsStates, type SavedState, type StateCall, type StateFiles } from './states.js';
import { openStore, type ModelStore } from './store.js';
import { runStoreCall, type CallStore } from './store_client.js';
import { opfsTuning, type TuningFile } from './tuning.js';

/** What a client talks to: an engine in this thread or behind a worker's messages. */
export interface EnginePort {
  call<M extends Method>(method: M, args: Methods[M]['args'], options?: CallOptions): Promise<Methods[M]['result']>;
  /** `give`: bytes are handed over, not copied. */
  addSource(spec: SourceSpec, give?: boolean): Promise<Part>;
  heapBytes(): Promise<number>;
  callStore: CallStore;
  callState(call: StateCall, options?: CallOptions): Promise<SavedState>;
  close(): void;
}

let opened: Promise<ModelStore> | undefined;
/** The store of downloaded models, opened once. */
export function theStore(): Promise<ModelStore> {
  opened ??= openStore().catch((error: unknown) => {
    opened = undefined;
    throw error;
  });
  return opened;
}

export type OpenSource = (spec: SourceSpec) => Promise<Source>;

export async function openSource(spec: SourceSpec): Promise<Source> {
  switch (spec.kind) {
    case 'bytes':
      return bytesSource(spec.bytes, spec.name);
    case 'blob':
      return blobSource(spec.blob, spec.name);
    case 'url':
      return urlSource(spec.url, spec.headers ? { headers: spec.headers } : {});
    case 'stored':
      return (await theStore()).source(spec.key);
    case 'file':
      throw new BezelError('unsupported', `${spec.path}: a page cannot open files by their path; choose the file instead.`);
  }
}

export class EngineHost implements EnginePort {
  private constructor(
    private readonly module: EngineModule,
    private readonly open: OpenSource,
    private readonly openStates: () => Promise<StateFiles>,
    private readonly tuning: TuningFile,
  ) {}

  static async create(
    options: ModuleOptions,
    open: OpenSource = openSource,
    openStates = opfsStates,
    tuning: TuningFile = opfsTuning,
  ): Promise<EngineHost> {
    return new EngineHost(await EngineModule.create(options), open, openStates, tuning);
  }

  async call<M extends Method>(method: M, args: Methods[M]['args'], options?: CallOptions): Promise<Methods[M]['result']> {
    if (method === 'load' && (args as LoadArguments).device !== undefined) {
      const tuning = await this.tuning.read().catch(() => '');
      if (tuning) args = { tuning, ...args };
    }
    const result = await this.module.call(method, args, options);
    const found = result as { tuning?: string };
    if (found.tuning !== undefined) {
      await this.tuning.write(found.tuning).catch(() => {});
      if (method !== 'tune') delete found.tuning; // of no interest to whoever asked for something else
    }
    return result;
  }
  async addSource(spec: SourceSpec): Promise<Part> {
    return this.module.addSource(await this.open(spec));
  }
  async heapBytes(): Promise<number> {
    return this.module.heapBytes;
  }
  readonly callStore: CallStore = async (call, options) => runStoreCall(await theStore(), call, options);
  async callState(call: StateCall, options?: CallOptions): Promise<SavedState> {
    const files = await this.openStates();
    if (call.action === 'restore') return this.restore(files, call);
    if (call.action === 'save') {
      const saved = await this.save(files, call, options);
      for (const old of (await files.keys()).slice(call.keep)) await files.delete(old);
      return saved;
    }
    await files.delete(call.key);
    return { tokens: 0, bytes: 0 };
  }
  close(): void {}

  private async save(files: StateFiles, { model, key }: Extract<StateCall, { action: 'save' }>, options?: CallOptions): Promise<SavedState> {
    const file = await files.write(key);
    const sink = this.module.addSink(file);
    let saved: SavedState | undefined;
    try {
      return (saved = await this.module.call('save_state', { model, sink }, options));
    } finally {
      this.module.removeSink(sink);
      file.close();
      if (saved === undefined) await files.delete(key); // half of it is of no use
    }
  }

  private async restore(files: StateFiles, { model, key, context }: Extract<StateCall, { action: 'restore' }>): Promise<SavedState> {
    const source = await files.read(key);
    if (source === undefined) return { tokens: 0, bytes: 0 };
    const part = this.module.addSource(source);
    const { tokens } = await this.module.call('restore_state', { model, part, ...(context !== undefined && { context }) });
    return { tokens, bytes: part.size };
  }
}

// The engine where it runs: in a worker, or in the caller's own thread (Node, tests). Owns the module and turns
// descriptions of sources into open ones.

import { EngineModule, type CallOptions, type ModuleOptions } from './module.js';
import { BezelError, type Method, type Methods, type Part, type SourceSpec } from './protocol.js';
import { blobSource, bytesSource, urlSource, type Source } from './sources.js';
import { openStore, type ModelStore } from './store.js';
import { runStoreCall, type CallStore } from './store_client.js';

/** What a client talks to: an engine in this thread or behind a worker's messages. */
export interface EnginePort {
  call<M extends Method>(method: M, args: Methods[M]['args'], options?: CallOptions): Promise<Methods[M]['result']>;
  addSource(spec: SourceSpec): Promise<Part>;
  heapBytes(): Promise<number>;
  callStore: CallStore;
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
  ) {}

  static async create(options: ModuleOptions, open: OpenSource = openSource): Promise<EngineHost> {
    return new EngineHost(await EngineModule.create(options), open);
  }

  call<M extends Method>(method: M, args: Methods[M]['args'], options?: CallOptions): Promise<Methods[M]['result']> {
    return this.module.call(method, args, options);
  }
  async addSource(spec: SourceSpec): Promise<Part> {
    return this.module.addSource(await this.open(spec));
  }
  async heapBytes(): Promise<number> {
    return this.module.heapBytes;
  }
  readonly callStore: CallStore = async (call, options) => runStoreCall(await theStore(), call, options);
  close(): void {}
}

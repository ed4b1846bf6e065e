// The store of downloaded models, as the page sees it: its methods run where files can be written, in a worker.

import { type EngineEvent } from './protocol.js';
import type { JobOptions, ModelStore } from './store.js';

export type StoreMethod = 'list' | 'find' | 'download' | 'importFile' | 'verify' | 'delete' | 'quota';
export type StoreClient = Pick<ModelStore, StoreMethod>;

/** A call of the store that can be sent: `subject` is the method's first argument. */
export interface StoreCall {
  method: StoreMethod;
  subject?: unknown;
  options?: object;
}
export interface StoreCallOptions {
  onEvent?: (event: EngineEvent) => void;
  signal?: AbortSignal | undefined;
}
export type CallStore = (call: StoreCall, options?: StoreCallOptions) => Promise<unknown>;

/** Where the store is: runs what `storeClient` sent. */
export function runStoreCall(store: ModelStore, { method, subject, options }: StoreCall, { onEvent, signal }: StoreCallOptions = {}): Promise<unknown> {
  const run = store[method].bind(store) as (subject: unknown, options: JobOptions) => Promise<unknown>;
  return run(subject, { ...options, signal, onProgress: (progress) => onEvent?.({ type: 'store', progress }) });
}

export function storeClient(call: CallStore): StoreClient {
  const simple = (method: StoreMethod) => (subject?: unknown) => call({ method, subject });
  const job =
    (method: StoreMethod) =>
    (subject: unknown, { onProgress, signal, ...options }: JobOptions = {}) =>
      call({ method, subject, options }, { signal, onEvent: (event) => event.type === 'store' && onProgress?.(event.progress) });
  const client: Record<StoreMethod, (...args: never[]) => Promise<unknown>> = {
    list: simple('list'),
    find: simple('find'),
    delete: simple('delete'),
    quota: simple('quota'),
    download: job('download'),
    importFile: job('importFile'),
    verify: job('verify'),
  };
  return client as StoreClient;
}

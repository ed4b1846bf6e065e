// The page's side of worker.ts.

import { type EnginePort } from './host.js';
import { type CallOptions } from './module.js';
import {
  BezelError,
  type EngineEvent,
  type FromWorker,
  type Method,
  type Methods,
  type Part,
  type SourceSpec,
  type ToWorker,
} from './protocol.js';
import { type SavedState, type StateCall } from './states.js';
import { type CallStore } from './store_client.js';

interface Pending {
  resolve(value: unknown): void;
  reject(error: BezelError): void;
  onEvent: ((event: EngineEvent) => void) | undefined;
}

type Unnumbered<T> = T extends unknown ? Omit<T, 'id'> : never;

export class WorkerPort implements EnginePort {
  private readonly pending = new Map<number, Pending>();
  private next = 0;
  private failure: BezelError | undefined;

  private storePort: WorkerPort | undefined;
  private readonly worker: Worker;

  private constructor(private readonly spawn: () => Worker) {
    const worker = (this.worker = spawn());
    worker.onmessage = ({ data }: MessageEvent<FromWorker>) => this.receive(data);
    worker.onerror = (event) => this.fail(`The engine's worker failed: ${event.message || 'it could not be loaded'}.`);
  }

  static async start(spawn: () => Worker, wasm: string): Promise<WorkerPort> {
    const port = new WorkerPort(spawn);
    try {
      await port.ask({ type: 'start', wasm });
    } catch (error) {
      port.worker.terminate();
      throw error;
    }
    return port;
  }

  call<M extends Method>(method: M, args: Methods[M]['args'], options: CallOptions = {}): Promise<Methods[M]['result']> {
    return this.ask({ type: 'call', method, args }, options) as Promise<Methods[M]['result']>;
  }
  addSource(spec: SourceSpec, give = false): Promise<Part> {
    const given = give && spec.kind === 'bytes' ? [spec.bytes.buffer as ArrayBuffer] : [];
    return this.ask({ type: 'source', spec }, {}, given) as Promise<Part>;
  }
  heapBytes(): Promise<number> {
    return this.ask({ type: 'heap' }) as Promise<number>;
  }
  callState(call: StateCall, options?: CallOptions): Promise<SavedState> {
    return this.ask({ type: 'state', call }, options) as Promise<SavedState>;
  }
  /** In a worker of its own: a download must not wait for a forward pass, nor an answer for a hash. */
  readonly callStore: CallStore = (call, options) => {
    this.storePort ??= new WorkerPort(this.spawn);
    return this.storePort.ask({ type: 'store', call }, options);
  };
  /** Ends the worker; the browser frees its GPU memory with it. */
  close(): void {
    this.storePort?.close();
    this.worker.terminate();
    this.fail('The engine was closed.');
  }

  private ask(message: Unnumbered<ToWorker>, options: CallOptions = {}, transfer: Transferable[] = []): Promise<unknown> {
    if (this.failure) return Promise.reject(this.failure);
    const { signal } = options;
    if (signal?.aborted) return Promise.reject(new BezelError('cancelled', 'The request was stopped before it began.'));
    const id = ++this.next;
    const stop = () => this.send({ type: 'stop', id });
    const result = new Promise<unknown>((resolve, reject) => {
      this.pending.set(id, { resolve, reject, onEvent: options.onEvent });
      signal?.addEventListener('abort', stop, { once: true });
      this.send({ ...message, id } as ToWorker, transfer);
    });
    return result.finally(() => signal?.removeEventListener('abort', stop));
  }

  private send(message: ToWorker, transfer: Transferable[] = []): void {
    this.worker.postMessage(message, transfer);
  }

  private receive(message: FromWorker): void {
    const waiting = this.pending.get(message.id);
    if (message.type === 'event') {
      waiting?.onEvent?.(message.event);
      return;
    }
    this.pending.delete(message.id);
    if (message.type === 'result') waiting?.resolve(message.value);
    else waiting?.reject(new BezelError(message.kind, message.message, message.detail));
  }

  private fail(message: string): void {
    this.failure ??= new BezelError('crashed', message);
    for (const waiting of this.pending.values()) waiting.reject(this.failure);
    this.pending.clear();
  }
}

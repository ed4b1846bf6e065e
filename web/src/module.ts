// The engine's WebAssembly module and the requests to it.

import { gpuImports, type ReplayTime, type Waiting } from './gpu.js';
import { Heap } from './heap.js';
import { BezelError, type EngineEvent, type ErrorKind, type Method, type Methods, type Part } from './protocol.js';
import { Sources, type Source } from './sources.js';
import { type Sink } from './states.js';
import { wasi } from './wasi.js';

interface Exports {
  memory: WebAssembly.Memory;
  _initialize(): void;
  bezel_alloc(bytes: number): number;
  bezel_request(call: number, text: number, length: number): void;
  bezel_stop(call: number): void;
  bezel_resume(call: number, answer: number): void;
}

export interface CallOptions {
  onEvent?: (event: EngineEvent) => void;
  /** Ends the request as soon as it can: with what it has, or with a BezelError of the kind `cancelled`. */
  signal?: AbortSignal | undefined;
}

interface Pending {
  resolve(result: unknown): void;
  reject(error: BezelError): void;
  onEvent: ((event: EngineEvent) => void) | undefined;
}

export interface ModuleOptions {
  /** The compiled bezel.wasm, its bytes, or the response of fetching it. */
  wasm: WebAssembly.Module | BufferSource | Response | Promise<Response>;
  /** navigator.gpu, or what npm `webgpu` gives in Node; without it only the CPU computes. */
  gpu?: GPU | undefined;
  /** How to wait for it, where more is needed than to await. */
  waiting?: Waiting;
}

async function compile(wasm: ModuleOptions['wasm']): Promise<WebAssembly.Module> {
  const given = await wasm;
  if (given instanceof WebAssembly.Module) return given;
  if (typeof Response !== 'undefined' && given instanceof Response) {
    if (!given.ok) throw new BezelError('not-found', `${given.url} could not be loaded (${given.status}).`);
    return WebAssembly.compile(await given.arrayBuffer());
  }
  return WebAssembly.compile(given as BufferSource);
}

const encoder = new TextEncoder();

/** Milliseconds that the CPU may compute before others get the thread: to stop it, say. */
const turn = 20;

export class EngineModule {
  private readonly heap = new Heap();
  private readonly sources = new Sources(this.heap);
  private readonly pending = new Map<number, Pending>();
  /** What running the GPU's programs has cost this thread so far. */
  readonly replay: ReplayTime = { runs: 0, milliseconds: 0, submitting: 0 };
  private readonly sinks = new Map<number, Sink>();
  private exports!: Exports;
  private next = 0;
  private turnBegan = 0;
  private crash: BezelError | undefined;

  private constructor() {}

  static async create(options: ModuleOptions): Promise<EngineModule> {
    const engine = new EngineModule();
    const { heap } = engine;
    const instance = await WebAssembly.instantiate(await compile(options.wasm), {
      wasi_snapshot_preview1: wasi(heap),
      gpu: gpuImports(heap, options.gpu, options.waiting ?? ((done) => done), engine.replay),
      source: engine.sources.imports,
      host: {
        message: (at: number, capacity: number) => heap.takeMessage(at, capacity),
        event: (call: number, at: number, length: number) => engine.event(call, JSON.parse(heap.text(at, length))),
        reply: (call: number, good: number, at: number, length: number, numbers: number, count: number) =>
          engine.reply(call, good !== 0, JSON.parse(heap.text(at, length)), numbers, count),
        pause: (call: number) => engine.pause(call),
      },
      sink: { write: (id: number, at: number, length: number) => engine.write(id, at, length) },
    });
    engine.exports = instance.exports as unknown as Exports;
    heap.memory = engine.exports.memory;
    heap.resume = (call, answer) => engine.guarded(() => engine.exports.bezel_resume(call, answer));
    engine.exports._initialize();
    return engine;
  }

  /** Bytes of WebAssembly memory. */
  get heapBytes(): number {
    return this.exports.memory.buffer.byteLength;
  }

  /** Hands a file over to the engine, which closes it. */
  addSource(source: Source): Part {
    return { source: this.sources.add(source), size: source.size, name: source.name };
  }

  /** What a request writes to as `sink`; whoever made it closes it. */
  addSink(sink: Sink): number {
    this.sinks.set(++this.next, sink);
    return this.next;
  }
  removeSink(id: number): void {
    this.sinks.delete(id);
  }
  private write(id: number, at: number, length: number): number {
    try {
      this.sinks.get(id)!.write(this.heap.bytes(at, length));
      return 0;
    } catch (error) {
      return this.heap.failure('io', `Writing failed: ${(error as Error).message}`);
    }
  }

  private pause(call: number): number {
    if (performance.now() - this.turnBegan < turn) return 0;
    const over = new Promise<number>((resolve) => setTimeout(() => resolve(0)));
    return this.heap.answer(call, over.finally(() => (this.turnBegan = performance.now())), 'io');
  }

  call<M extends Method>(method: M, args: Methods[M]['args'], options: CallOptions = {}): Promise<Methods[M]['result']> {
    if (this.crash) return Promise.reject(this.crash);
    if (options.signal?.aborted) return Promise.reject(new BezelError('cancelled', 'The request was stopped before it began.'));
    const id = ++this.next;
    const stop = () => this.guarded(() => this.exports.bezel_stop(id));
    const result = new Promise<unknown>((resolve, reject) => {
      this.pending.set(id, { resolve, reject, onEvent: options.onEvent });
      options.signal?.addEventListener('abort', stop, { once: true });
      this.guarded(() => {
        const text = encoder.encode(JSON.stringify({ method, args }));
        const at = this.exports.bezel_alloc(text.length);
        this.heap.bytes(at, text.length).set(text);
        this.exports.bezel_request(id, at, text.length);
      });
    });
    return result.finally(() => options.signal?.removeEventListener('abort', stop)) as Promise<Methods[M]['result']>;
  }

  private event(call: number, event: EngineEvent): void {
    this.pending.get(call)?.onEvent?.(event);
  }

  private reply(call: number, good: boolean, value: { kind: ErrorKind; message: string }, numbers: number, count: number): void {
    const waiting = this.pending.get(call);
    this.pending.delete(call);
    if (!good) waiting?.reject(new BezelError(value.kind, value.message));
    else if (count === 0) waiting?.resolve(value);
    else waiting?.resolve({ ...value, numbers: new Float32Array(this.heap.memory!.buffer, numbers, count).slice() });
  }

  /** A trap inside the module leaves it in no state to go on: everything that waits fails, and all that follows. */
  private guarded(body: () => void): void {
    if (this.crash) return;
    try {
      body();
    } catch (error) {
      this.crash = new BezelError('crashed', `The engine failed: ${(error as Error).message}. Create it again.`);
      for (const waiting of this.pending.values()) waiting.reject(this.crash);
      this.pending.clear();
    }
  }
}

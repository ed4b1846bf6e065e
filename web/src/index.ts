// bezel in a browser.

import { Engine, type EngineOptions } from './engine.js';
import { EngineHost } from './host.js';
import { WorkerPort } from './worker_port.js';

export interface CreateOptions extends EngineOptions {
  /** Run in a Dedicated Worker, so that the page never waits. */
  worker?: boolean;
  /** Where bezel.wasm is, if not beside this file. */
  wasm?: string | URL;
}

export async function createEngine(options: CreateOptions = {}): Promise<Engine> {
  const wasm = new URL(options.wasm ?? new URL('./bezel.wasm', import.meta.url), globalThis.location?.href).href;
  const port =
    options.worker === false
      ? await EngineHost.create({ wasm: fetch(wasm), gpu: navigator.gpu })
      : await WorkerPort.start(() => new Worker(new URL('./worker.js', import.meta.url), { type: 'module', name: 'bezel' }), wasm);
  return Engine.create(port, options);
}

export * from './common.js';

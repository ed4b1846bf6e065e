// bezel in Node: files, and WebGPU from the npm package `webgpu` where it is installed.

import { closeSync, fstatSync, mkdirSync, openSync, readdirSync, readFileSync, readSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { Engine, type EngineOptions } from './engine.js';
import { EngineHost, openSource } from './host.js';
import { BezelError, type SourceSpec } from './protocol.js';
import { syncSource, type Source } from './sources.js';
import { fileOf, keysOf, type StateFiles } from './states.js';
import { type TuningFile } from './tuning.js';

export function fileSource(path: string): Source {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    throw new BezelError('not-found', `${path} could not be opened: ${(error as Error).message}.`);
  }
  return syncSource(
    path,
    fstatSync(file).size,
    (into, offset) => readSync(file, into, 0, into.length, offset),
    () => closeSync(file),
  );
}

/** Options are Dawn's, such as 'enable-dawn-features=allow_unsafe_apis'. */
export async function nodeGpu(options: string[] = []): Promise<GPU | undefined> {
  const webgpu = 'webgpu'; // not known to bundlers: it is optional
  const found = (await import(webgpu).catch(() => undefined)) as { create(options: string[]): GPU } | undefined;
  return found?.create(options);
}

const never = new Int32Array(new SharedArrayBuffer(4));

/**
 * Waits for the GPU, asleep for up to a millisecond at a time. `webgpu` asks the GPU once in every turn of the event loop, by
 * a native function made for that turn: awake, a core does nothing else, and collecting those functions takes longer than
 * the calls of a token. Naps grow with the wait, so that they delay its end by a sixteenth.
 */
export function nodeWaiting<T>(done: Promise<T>): Promise<T> {
  const begin = performance.now();
  let waiting = true;
  const nap = (): void => {
    if (!waiting) return;
    Atomics.wait(never, 0, 0, Math.min(1, (performance.now() - begin) / 16));
    setImmediate(nap);
  };
  setImmediate(nap);
  return done.finally(() => (waiting = false));
}

/** Conversations that are kept, in a folder. */
function folderStates(folder: string): StateFiles {
  mkdirSync(folder, { recursive: true });
  const pathOf = (key: string): string => join(folder, fileOf(key));
  return {
    read: async (key) => (statSync(pathOf(key), { throwIfNoEntry: false }) ? fileSource(pathOf(key)) : undefined),
    async write(key) {
      const file = openSync(pathOf(key), 'w');
      return { write: (bytes) => void writeSync(file, bytes), close: () => closeSync(file) };
    },
    delete: async (key) => rmSync(pathOf(key), { force: true }),
    keys: async () => keysOf(readdirSync(folder).map((name) => ({ name, at: statSync(join(folder, name)).mtimeMs }))),
  };
}

export interface CreateOptions extends EngineOptions {
  /** Where bezel.wasm is, if not beside this file. */
  wasm?: string | URL;
  gpu?: GPU | undefined;
  /** A folder for model.saveState(). */
  states?: string;
  /** A file for what model.tune() and loads find out about the GPU; without one it is forgotten. */
  tuning?: string;
}

const tuningIn = (path: string | undefined): TuningFile => ({
  read: async () => (path === undefined ? '' : readFileSync(path, 'utf8')),
  write: async (text) => {
    if (path !== undefined) writeFileSync(path, text);
  },
});

/** Runs in the caller's thread: Node's GPU calls do not block it. */
export async function createEngine(options: CreateOptions = {}): Promise<Engine> {
  const open = async (spec: SourceSpec): Promise<Source> => (spec.kind === 'file' ? fileSource(spec.path) : openSource(spec));
  const wasm = readFileSync(options.wasm ?? new URL('./bezel.wasm', import.meta.url));
  const gpu = options.gpu ?? (await nodeGpu());
  const openStates = async (): Promise<StateFiles> => {
    if (options.states === undefined) throw new BezelError('unsupported', 'Create the engine with a folder for `states` to keep conversations.');
    return folderStates(options.states);
  };
  return Engine.create(await EngineHost.create({ wasm, gpu, waiting: nodeWaiting }, open, openStates, tuningIn(options.tuning)), options);
}

export * from './common.js';

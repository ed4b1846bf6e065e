// bezel in Node: files, and WebGPU from the npm package `webgpu` where it is installed.

import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import { Engine, type EngineOptions } from './engine.js';
import { EngineHost, openSource } from './host.js';
import { BezelError, type SourceSpec } from './protocol.js';
import { syncSource, type Source } from './sources.js';

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

export interface CreateOptions extends EngineOptions {
  /** Where bezel.wasm is, if not beside this file. */
  wasm?: string | URL;
  gpu?: GPU | undefined;
}

/** Runs in the caller's thread: Node's GPU calls do not block it. */
export async function createEngine(options: CreateOptions = {}): Promise<Engine> {
  const open = async (spec: SourceSpec): Promise<Source> => (spec.kind === 'file' ? fileSource(spec.path) : openSource(spec));
  const wasm = readFileSync(options.wasm ?? new URL('./bezel.wasm', import.meta.url));
  const gpu = options.gpu ?? (await nodeGpu());
  return Engine.create(await EngineHost.create({ wasm, gpu }, open), options);
}

export * from './common.js';

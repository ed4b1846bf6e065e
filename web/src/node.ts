// The engine in Node: files, and WebGPU from the npm package `webgpu`.

import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import { EngineModule } from './module.js';
import { BezelError } from './protocol.js';
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
export async function nodeGpu(options: string[] = []): Promise<GPU> {
  const { create } = (await import('webgpu')) as unknown as { create(options: string[]): GPU };
  return create(options);
}

export async function createNodeModule(wasmPath: string | URL, gpu?: GPU): Promise<EngineModule> {
  return EngineModule.create({ wasm: readFileSync(wasmPath), gpu });
}

// What the module's C library asks of its host at least: time, chance, and nowhere to write.

import { type Heap } from './heap.js';

const kBadFile = 8;
const kNotSupported = 52;

export function wasi(heap: Heap): WebAssembly.ModuleImports {
  const view = () => new DataView(heap.memory!.buffer);
  const zero = (...at: number[]) => at.forEach((p) => view().setUint32(p, 0, true));
  const calls: Record<string, (...args: number[]) => number | void> = {
    environ_sizes_get: (count, size) => (zero(count!, size!), 0),
    environ_get: () => 0,
    clock_time_get: (_id, _precision, out) => {
      view().setBigUint64(out!, BigInt(Math.round(performance.now() * 1e6)), true);
      return 0;
    },
    random_get: (at, length) => {
      crypto.getRandomValues(heap.bytes(at!, length!));
      return 0;
    },
    fd_prestat_get: () => kBadFile,
    proc_exit: (code) => {
      throw new Error(`The engine ended itself with code ${code}.`);
    },
  };
  return new Proxy(calls, { get: (known, name) => known[name as string] ?? (() => kNotSupported) }) as WebAssembly.ModuleImports;
}

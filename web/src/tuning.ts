// What `tune`, and trials when models were loaded, found out about this device's GPU, in one small file. It is a
// convenience: where it cannot be read or written, or is of another GPU, kernels are those of the engine's own table,
// and what is tried is tried again.

import { findFile, openToWrite } from './opfs.js';

export interface TuningFile {
  /** Empty where there is none. */
  read(): Promise<string>;
  write(text: string): Promise<void>;
}

const name = 'bezel-tuning.json';

/** In the browser's private file system; only a worker can write there. */
export const opfsTuning: TuningFile = {
  async read() {
    const file = await findFile(await navigator.storage.getDirectory(), name);
    return file ? (await file.getFile()).text() : '';
  },
  async write(text) {
    const file = await openToWrite(await navigator.storage.getDirectory(), name);
    file.truncate(0);
    file.write(new TextEncoder().encode(text), { at: 0 });
    file.flush();
    file.close();
  },
};

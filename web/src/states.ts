// What the engine holds of conversations (tokens, keys and values), kept in files: reopening a long one after a reload
// computes nothing again. Such a file is a convenience. Where it is missing, damaged or of another model, the
// conversation is computed from its text.

import { findFile, openToRead, openToWrite } from './opfs.js';
import { BezelError } from './protocol.js';
import { blobSource, syncSource, type Source } from './sources.js';

export interface Sink {
  write(bytes: Uint8Array): void;
  close(): void;
}

/** The files, by any name. */
export interface StateFiles {
  read(key: string): Promise<Source | undefined>;
  write(key: string): Promise<Sink>;
  delete(key: string): Promise<void>;
  /** Of all of them, the latest written first. */
  keys(): Promise<string[]>;
}

export type StateCall =
  | { action: 'save'; model: number; key: string; keep: number }
  | { action: 'restore'; model: number; key: string; context: number | undefined }
  | { action: 'drop'; key: string };

export interface SavedState {
  tokens: number;
  bytes: number;
}

const suffix = '.kv';
export const fileOf = (key: string): string => encodeURIComponent(key) + suffix;
/** The names of files and when they were written become keys. */
export const keysOf = (files: { name: string; at: number }[]): string[] =>
  files
    .filter(({ name }) => name.endsWith(suffix))
    .sort((a, b) => b.at - a.at)
    .map(({ name }) => decodeURIComponent(name.slice(0, -suffix.length)));

/** In the browser's private file system; only a worker can write there. */
export async function opfsStates(folderName = 'bezel-states'): Promise<StateFiles> {
  if (globalThis.navigator?.storage?.getDirectory === undefined) {
    throw new BezelError('unsupported', 'Conversations cannot be kept here: this browser has no private file system.');
  }
  const root = await navigator.storage.getDirectory();
  const folder = await root.getDirectoryHandle(folderName, { create: true });
  return {
    async read(key) {
      const handle = await findFile(folder, fileOf(key));
      if (handle === undefined) return undefined;
      const file = await openToRead(handle);
      if (file === undefined) return blobSource(await handle.getFile(), key);
      return syncSource(key, file.getSize(), (into, at) => file.read(into, { at }), () => file.close());
    },
    async write(key) {
      const file = await openToWrite(folder, fileOf(key));
      file.truncate(0);
      let at = 0;
      return {
        write(bytes) {
          if (file.write(bytes, { at }) !== bytes.length) throw new BezelError('quota', 'The browser has no room for the conversation.');
          at += bytes.length;
        },
        close() {
          file.flush();
          file.close();
        },
      };
    },
    async delete(key) {
      if (await findFile(folder, fileOf(key))) await folder.removeEntry(fileOf(key));
    },
    async keys() {
      const files: { name: string; at: number }[] = [];
      for await (const [name, handle] of folder.entries()) {
        if (handle.kind === 'file') files.push({ name, at: (await (handle as FileSystemFileHandle).getFile()).lastModified });
      }
      return keysOf(files);
    },
  };
}

// The browser's private file system, as far as the store uses it.

import { decodeJournal, type Entry, type SyncFile } from './journal.js';

export const journalName = 'journal';
export const partName = 'data.part';
export const dataName = 'data.gguf';

/** What only workers have, and TypeScript's DOM types therefore lack. */
interface WorkerFileHandle extends FileSystemFileHandle {
  createSyncAccessHandle?(options?: { mode: 'read-only' | 'readwrite' }): Promise<SyncFile>;
  move?(name: string): Promise<void>;
}

export const isError = (error: unknown, ...names: string[]): boolean => names.includes((error as Error)?.name);
const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** A file that a tab held when it died may stay locked for a moment. */
async function retried<T>(attempt: () => Promise<T>, ...names: string[]): Promise<T> {
  for (let wait = 10; ; wait *= 2) {
    try {
      return await attempt();
    } catch (error) {
      if (wait > 5000 || !isError(error, ...names)) throw error;
      await pause(wait);
    }
  }
}

/** For reading and writing, for this worker alone. */
export async function openToWrite(folder: FileSystemDirectoryHandle, name: string): Promise<SyncFile> {
  const handle: WorkerFileHandle = await folder.getFileHandle(name, { create: true });
  return retried(() => handle.createSyncAccessHandle!(), 'NoModificationAllowedError', 'InvalidStateError');
}

/**
 * Reads now, without a copy; nothing where that cannot be. Browsers that do not know the mode open it for one reader
 * only, others then have to read the file as a Blob.
 */
export async function openToRead(handle: WorkerFileHandle): Promise<SyncFile | undefined> {
  try {
    return await handle.createSyncAccessHandle?.({ mode: 'read-only' });
  } catch (error) {
    if (isError(error, 'NoModificationAllowedError', 'InvalidStateError')) return undefined;
    throw error;
  }
}

/** In place of a file that has the name already. */
export async function rename(folder: FileSystemDirectoryHandle, from: string, to: string): Promise<void> {
  const handle: WorkerFileHandle = await folder.getFileHandle(from);
  if (await findFile(folder, to)) await folder.removeEntry(to);
  await retried(() => handle.move!(to), 'NoModificationAllowedError', 'InvalidStateError');
}

/** The file, where it exists. */
export async function findFile(folder: FileSystemDirectoryHandle, name: string): Promise<FileSystemFileHandle | undefined> {
  try {
    return await folder.getFileHandle(name);
  } catch (error) {
    if (isError(error, 'NotFoundError', 'TypeMismatchError')) return undefined;
    throw error;
  }
}
export async function findFolder(parent: FileSystemDirectoryHandle, name: string): Promise<FileSystemDirectoryHandle | undefined> {
  try {
    return await parent.getDirectoryHandle(name);
  } catch (error) {
    if (isError(error, 'NotFoundError', 'TypeMismatchError')) return undefined;
    throw error;
  }
}

export async function sizeOf(folder: FileSystemDirectoryHandle, name: string): Promise<number> {
  const file = await findFile(folder, name);
  return file ? (await file.getFile()).size : -1;
}

/** What the journal of a folder says, also while another tab writes it. */
export async function readEntry(folder: FileSystemDirectoryHandle): Promise<Entry | undefined> {
  const handle = await findFile(folder, journalName);
  if (handle === undefined) return undefined;
  // A Blob whose file was written meanwhile cannot be read.
  const read = async () => new Uint8Array(await (await handle.getFile()).arrayBuffer());
  return decodeJournal(await retried(read, 'NotReadableError'));
}

export async function remove(parent: FileSystemDirectoryHandle, key: string): Promise<void> {
  const folder = await findFolder(parent, key);
  if (folder === undefined) return;
  // The journal first: a folder without one is swept away when the store is next opened.
  const gone = (error: unknown) => {
    if (!isError(error, 'NotFoundError')) throw error;
  };
  await retried(() => folder.removeEntry(journalName), 'NoModificationAllowedError', 'InvalidStateError').catch(gone);
  await retried(() => parent.removeEntry(key, { recursive: true }), 'NoModificationAllowedError', 'InvalidStateError').catch(gone);
}

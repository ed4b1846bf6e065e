// Models in the browser's private file system (OPFS).
//
// Runs in a Dedicated Worker: only there can files be written in place. It needs no cross-origin isolation. Each file
// has a folder `bezel-models/<key>` with a journal and `data.part`, which becomes `data.gguf` once every byte is there
// and its SHA-256 was found good; nothing else is ever called ready. A tab may die at any moment: what the journal
// tells survives, and the next download goes on from there.

import { begin, ChangedError, defaultTuning, type Begun, type Known, type Tuning } from './download.js';
import { Journal, Spans, type Entry, type SyncFile } from './journal.js';
import { dataName, findFile, findFolder, isError, journalName, openToRead, openToWrite } from './opfs.js';
import { partName, readEntry, remove, rename, sizeOf } from './opfs.js';
import { DigestError, PartialFile } from './partial.js';
import { Meter, type StoreActivity, type StoreProgress } from './progress.js';
import { BezelError } from './protocol.js';
import { Sha256 } from './sha256.js';
import { blobSource, syncSource, type Source } from './sources.js';

export interface StoredModel {
  key: string;
  name: string;
  /** Empty for a file from disk. */
  url: string;
  size: number;
  /** Bytes that are there. */
  done: number;
  state: 'partial' | 'ready';
  /** SHA-256 in hexadecimal: what it is when ready, before that what it must be; empty where unknown. */
  digest: string;
  /** Milliseconds since 1970. */
  added: number;
  lastUsed: number;
}

export interface StoreOptions extends Partial<Tuning> {
  /** The folder in the private file system. */
  folder?: string;
}

export interface JobOptions {
  onProgress?: ((progress: StoreProgress) => void) | undefined;
  /** Stops; what has arrived is kept. */
  signal?: AbortSignal | undefined;
}

export interface DownloadRequest {
  /** Stored with the file. */
  url: string;
  name: string;
  /** The SHA-256 it must have, also as `sha256:…`. Taken from the URL where it names one, as Ollama's blobs do. */
  digest?: string | undefined;
  /** Letters, digits, `.`, `_` and `-`. By default made from the digest or the URL. */
  key?: string | undefined;
  /** Sent with each request, and not stored. */
  headers?: Record<string, string> | undefined;
}

interface Wanted {
  key: string;
  name: string;
  url: string;
  expected: string;
}
type Tell = (state: StoreActivity, note?: string) => void;
type Begin = (spans: Spans, known: Known | undefined, signal: AbortSignal, tell: Tell) => Promise<Omit<Begun, 'ranges'>>;

/** A file may change this often while it is downloaded. */
const mostRestarts = 2;
const importSlice = 4 << 20;

function readDigest(text: string): string {
  const found = /^(?:sha256[:-])?([0-9a-f]{64})$/i.exec(text)?.[1];
  if (found === undefined) throw new BezelError('invalid', `'${text}' is no SHA-256 digest: it must have 64 hexadecimal digits.`);
  return found.toLowerCase();
}
const digestIn = (url: string): string => /sha256(?::|%3a|-)([0-9a-f]{64})(?![0-9a-f])/i.exec(url)?.[1]?.toLowerCase() ?? '';
const shortHash = (text: string): string => new Sha256().update(new TextEncoder().encode(text)).digest().slice(0, 32);

function checkKey(key: string): void {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(key)) {
    throw new BezelError('invalid', `'${key}' cannot be a key: up to 128 letters, digits, '.', '_' and '-' are allowed, beginning with a letter or digit.`);
  }
}

/** Asks the browser never to delete the store when space runs out. Only a page may ask, a worker is told the answer. */
export async function requestPersistence(): Promise<boolean> {
  const { storage } = navigator;
  return storage.persist ? storage.persist() : storage.persisted();
}

export async function openStore(options: StoreOptions = {}): Promise<ModelStore> {
  const { folder = 'bezel-models', ...tuning } = options;
  if (globalThis.navigator?.storage?.getDirectory === undefined || navigator.locks === undefined) {
    throw new BezelError('unsupported', 'This browser or page has no private file system: it needs a recent browser and HTTPS.');
  }
  try {
    const root = await (await navigator.storage.getDirectory()).getDirectoryHandle(folder, { create: true });
    const store = new ModelStore(root, folder, { ...defaultTuning, ...tuning });
    await store.sweep();
    return store;
  } catch (error) {
    if (!isError(error, 'SecurityError')) throw error;
    throw new BezelError('unsupported', 'The browser does not let this page store files. Private windows often forbid it.');
  }
}

export class ModelStore {
  /** Use `openStore`. */
  constructor(
    private readonly root: FileSystemDirectoryHandle,
    private readonly folder: string,
    private readonly tuning: Tuning,
  ) {}

  /** Finishes what a dying tab left half done: a file that only had to be renamed, a folder half deleted. */
  async sweep(): Promise<void> {
    for (const key of await this.keys()) {
      const swept = navigator.locks.request(`${this.folder}/${key}`, { ifAvailable: true }, async (lock) => {
        const folder = lock && (await findFolder(this.root, key));
        if (!folder) return;
        const entry = await readEntry(folder);
        if (entry === undefined) await remove(this.root, key);
        else if (entry.digest !== '' && (await sizeOf(folder, partName)) === entry.size) await rename(folder, partName, dataName);
      });
      await swept.catch(() => {}); // one folder in trouble must not close the store to all others
    }
  }

  async list(): Promise<StoredModel[]> {
    const models: StoredModel[] = [];
    for (const key of await this.keys()) {
      const model = await this.find(key);
      if (model) models.push(model);
    }
    return models.sort((a, b) => b.lastUsed - a.lastUsed);
  }

  async find(key: string): Promise<StoredModel | undefined> {
    checkKey(key);
    try {
      return await this.look(key);
    } catch (error) {
      if (isError(error, 'NotFoundError')) return undefined; // another tab has just deleted it
      throw error;
    }
  }

  private async look(key: string): Promise<StoredModel | undefined> {
    const folder = await findFolder(this.root, key);
    const entry = folder && (await readEntry(folder));
    if (entry === undefined) return undefined;
    const { name, url, size, digest, expected, added, lastUsed } = entry;
    const ready = digest !== '' && (await sizeOf(folder!, dataName)) === size;
    const done = new Spans(entry.spans).total;
    return { key, name, url, size, done, state: ready ? 'ready' : 'partial', digest: ready ? digest : expected, added, lastUsed };
  }

  /** Resolves when the file is ready. While another tab downloads it, waits for that one, or takes over when it ends. */
  async download(request: DownloadRequest, options: JobOptions = {}): Promise<StoredModel> {
    const url = new URL(request.url, globalThis.location?.href).href;
    const expected = request.digest ? readDigest(request.digest) : digestIn(url);
    const key = request.key ?? (expected ? `sha256-${expected}` : `url-${shortHash(url)}`);
    const { name, headers } = request;
    const begins: Begin = (spans, known, signal, tell) => begin({ url, headers, tuning: this.tuning, signal, tell }, spans, known);
    return this.obtain({ key, name, url, expected }, begins, options);
  }

  /** Copies a file from disk into the store. */
  async importFile(
    file: File,
    options: JobOptions & { name?: string; digest?: string | undefined; key?: string | undefined } = {},
  ): Promise<StoredModel> {
    if (file.size === 0) throw new BezelError('invalid', `${file.name} is empty.`);
    const expected = options.digest ? readDigest(options.digest) : '';
    const key = options.key ?? (expected ? `sha256-${expected}` : `file-${shortHash(`${file.name}/${file.size}/${file.lastModified}`)}`);
    const begins: Begin = async (_spans, known, signal, tell) => {
      const version = `${file.lastModified}`;
      if (known && (known.size !== file.size || known.version !== version)) throw new ChangedError('The file has changed.');
      const fetchInto: Begun['fetchInto'] = async (part) => {
        for (let gap; (gap = part.spans.firstGap(part.size, importSlice)); ) {
          part.write(new Uint8Array(await file.slice(...gap).arrayBuffer()), gap[0]);
          signal.throwIfAborted();
          tell('downloading');
        }
      };
      return { size: file.size, version, fetchInto, cancel: () => {} };
    };
    return this.obtain({ key, name: options.name ?? file.name, url: '', expected }, begins, options);
  }

  /** For the engine to read. While it is open, the file cannot be deleted. */
  async source(key: string): Promise<Source> {
    const release = await this.hold(key);
    try {
      const { model, folder } = await this.ready(key);
      await this.amend(folder, { lastUsed: Date.now() });
      const handle = (await findFile(folder, dataName))!;
      const file = await openToRead(handle);
      if (file === undefined) return { ...blobSource(await handle.getFile(), model.name), close: release };
      const close = () => (file.close(), release());
      return syncSource(model.name, model.size, (into, at) => file.read(into, { at }), close);
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Reads all of a ready file once more. A bad one is an error, and not ready any more. */
  async verify(key: string, options: JobOptions = {}): Promise<StoredModel> {
    const source = await this.source(key);
    const hash = new Sha256();
    const meter = new Meter((progress) => options.onProgress?.(progress));
    const buffer = new Uint8Array(1 << 20);
    try {
      for (let at = 0; at < source.size; at = hash.length) {
        const length = Math.min(buffer.length, source.size - at);
        hash.update((await source.read(at, length, () => buffer.subarray(0, length))) ?? buffer.subarray(0, length));
        meter.tell('verifying', hash.length, source.size);
        if (options.signal?.aborted) throw new BezelError('cancelled', `Verifying ${source.name} was stopped.`);
      }
    } finally {
      source.close?.();
    }
    const { model, folder } = await this.ready(key);
    if (hash.digest() === model.digest) return model;
    await this.amend(folder, { digest: '', spans: [], hashes: [] }); // not ready from now on
    await this.delete(key).catch(() => {}); // another tab may still be reading it
    throw new DigestError(model.name, model.size, hash.digest(), model.digest);
  }

  async delete(key: string): Promise<void> {
    checkKey(key);
    await navigator.locks.request(`${this.folder}/${key}`, { ifAvailable: true }, async (lock) => {
      if (lock === null) throw new BezelError('busy', `${key} is being used or downloaded, perhaps in another tab. Stop that first.`);
      await remove(this.root, key);
    });
  }

  async quota(): Promise<{ usage: number; quota: number; persisted: boolean }> {
    const { usage = 0, quota = 0 } = await navigator.storage.estimate();
    return { usage, quota, persisted: await navigator.storage.persisted() };
  }

  private async keys(): Promise<string[]> {
    const keys: string[] = [];
    for await (const key of this.root.keys()) keys.push(key);
    return keys;
  }

  private async ready(key: string): Promise<{ model: StoredModel; folder: FileSystemDirectoryHandle }> {
    const model = await this.find(key);
    if (model === undefined) throw new BezelError('not-found', `The store has no model with the key ${key}.`);
    if (model.state === 'ready') return { model, folder: (await findFolder(this.root, key))! };
    throw new BezelError('not-found', `${model.name} is not complete: ${model.done} of ${model.size} bytes are there. Download it first.`);
  }

  /** Keeps others from changing the file until the returned function is called. */
  private hold(key: string): Promise<() => void> {
    checkKey(key);
    return new Promise((resolve, reject) => {
      const held = (lock: Lock | null): Promise<void> => {
        if (lock !== null) return new Promise((release) => resolve(release));
        throw new BezelError('busy', `${key} is being downloaded or deleted, perhaps in another tab.`);
      };
      navigator.locks.request(`${this.folder}/${key}`, { mode: 'shared', ifAvailable: true }, held).catch(reject);
    });
  }

  private async amend(folder: FileSystemDirectoryHandle, change: Partial<Entry>): Promise<void> {
    const journal = new Journal(await openToWrite(folder, journalName));
    try {
      if (journal.entry) journal.write({ ...journal.entry, ...change });
    } finally {
      journal.close();
    }
  }

  /** The file as wanted, where it is there. */
  private async present({ key, expected }: Wanted): Promise<StoredModel | undefined> {
    const model = await this.find(key);
    if (model?.state !== 'ready') return undefined;
    if (expected === '' || expected === model.digest) return model;
    throw new BezelError('invalid', `${key} is in the store with the SHA-256 ${model.digest}, not ${expected}. Delete it first, or choose another key.`);
  }

  private async obtain(wanted: Wanted, begins: Begin, options: JobOptions): Promise<StoredModel> {
    const { key } = wanted;
    const signal = options.signal ?? new AbortController().signal;
    const lock = `${this.folder}/${key}`;
    const channel = new BroadcastChannel(this.folder);
    const meter = new Meter((progress) => {
      options.onProgress?.(progress);
      channel.postMessage({ key, progress });
    });
    const work = (): Promise<StoredModel> => this.fill(wanted, begins, signal, meter);
    try {
      const there = (await this.present(wanted)) ?? (await navigator.locks.request(lock, { ifAvailable: true }, (free) => free && work()));
      if (there) return there;
      options.onProgress?.({ state: 'waiting', done: 0, total: 0, bytesPerSecond: 0, secondsLeft: undefined });
      channel.onmessage = ({ data }: MessageEvent<{ key: string; progress: StoreProgress }>) => {
        if (data.key === key) options.onProgress?.(data.progress);
      };
      return await navigator.locks.request(lock, { signal }, () => {
        channel.onmessage = null;
        return work();
      });
    } catch (error) {
      if (error instanceof BezelError) throw error;
      if (signal.aborted) throw new BezelError('cancelled', `${wanted.name} was stopped. What has arrived is kept.`);
      throw new BezelError('io', `${wanted.name} could not be stored: ${(error as Error).message}`);
    } finally {
      channel.close();
    }
  }

  /**
   * The browser refused to make the file as long as it must be. That is asked for before anything is fetched; the
   * estimate is only told, for browsers estimate some fixed amount so that sites do not learn the disk's size.
   */
  private async quotaError(name: string, needed: number): Promise<BezelError> {
    const { usage, quota } = await this.quota();
    const available = Math.max(0, quota - usage);
    const estimate = available < needed ? `allows about ${available}` : 'refuses them';
    const message = `There is not enough space for ${name}: it needs ${needed} more bytes, and the browser ${estimate}. Delete a model or free disk space.`;
    return new BezelError('quota', message, { needed, available });
  }

  /** Downloads until it is ready, again from the beginning where the file has changed. The lock is held. */
  private async fill(wanted: Wanted, begins: Begin, signal: AbortSignal, meter: Meter): Promise<StoredModel> {
    for (let restarts = 0; ; restarts++) {
      const there = await this.present(wanted);
      if (there) return there;
      try {
        await this.fillOnce(wanted, begins, signal, meter);
        const model = (await this.ready(wanted.key)).model;
        meter.tell('ready', model.size, model.size);
        return model;
      } catch (error) {
        if (error instanceof DigestError || error instanceof ChangedError) await remove(this.root, wanted.key);
        if (!(error instanceof ChangedError)) throw error;
        if (restarts === mostRestarts) throw new BezelError('io', `${wanted.name} keeps changing while it is downloaded: ${error.message}`);
        meter.tell('restarted', 0, 0, error.message);
      }
    }
  }

  private async fillOnce(wanted: Wanted, begins: Begin, signal: AbortSignal, meter: Meter): Promise<void> {
    const folder = await this.root.getDirectoryHandle(wanted.key, { create: true });
    const journal = new Journal(await openToWrite(folder, journalName));
    const old = continues(journal.entry, wanted);
    const spans = new Spans(old?.spans);
    let data: SyncFile | undefined;
    let part: PartialFile | undefined;
    let begun: Awaited<ReturnType<Begin>> | undefined;
    try {
      const tell: Tell = (state, note) => meter.tell(state, (part?.spans ?? spans).total, part?.size ?? old?.size ?? 0, note);
      tell('starting');
      // The same bytes at another address may have another version there.
      const known = old && { size: old.size, ...(old.url === wanted.url && { version: old.version }) };
      if (old === undefined || spans.total < old.size) begun = await begins(spans, known, signal, tell);
      const { size, version } = (begun ?? old)!;
      const now = Date.now();
      const entry: Entry = {
        ...{ ...wanted, size, version, digest: '' },
        ...{ spans: spans.list, hashes: old?.hashes ?? [], added: old?.added ?? now, lastUsed: now },
      };
      data = await openToWrite(folder, partName);
      part = new PartialFile(data, journal, entry);
      if (part.spans.total < spans.total) tell('restarted', 'What was stored is damaged.');
      await begun?.fetchInto(part);
      if (!part.complete) throw new ChangedError('What was stored is damaged.');
      await part.finish(signal, (hashed) => meter.tell('verifying', hashed, size));
    } catch (error) {
      try {
        part?.sync();
      } catch {
        // The first error is the one to tell; what the journal said before still holds.
      }
      if (isError(error, 'QuotaExceededError')) throw await this.quotaError(wanted.name, (begun?.size ?? 0) - spans.total);
      throw error;
    } finally {
      begun?.cancel();
      data?.close();
      journal.close();
      if (!journal.entry?.spans.length) await remove(this.root, wanted.key); // nothing to keep, and space to give back
    }
    await rename(folder, partName, dataName);
  }
}

/** What was begun, where the wanted file can go on from it. */
function continues(old: Entry | undefined, { url, expected }: Wanted): Entry | undefined {
  if (old === undefined || (expected !== '' && old.expected !== '' && expected !== old.expected)) return undefined;
  return old.url === url || (expected !== '' && expected === old.expected) ? old : undefined;
}

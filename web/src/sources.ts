// Where a model's bytes come from, and the imports with which the engine reads them.

import { type Heap } from './heap.js';
import { BezelError } from './protocol.js';

export interface Source {
  readonly name: string;
  readonly size: number;
  /** Exactly `length` bytes, now or later. A source that can fill `into` at once may do so and return nothing. */
  read(offset: number, length: number, into: () => Uint8Array): Promise<Uint8Array> | void;
  close?(): void;
}

export function bytesSource(bytes: Uint8Array, name = 'memory'): Source {
  return {
    name,
    size: bytes.length,
    read: (offset, length, into) => into().set(bytes.subarray(offset, offset + length)),
  };
}

/** A File, or any Blob. */
export function blobSource(blob: Blob, name = (blob as File).name ?? 'blob'): Source {
  return {
    name,
    size: blob.size,
    read: async (offset, length) => new Uint8Array(await blob.slice(offset, offset + length).arrayBuffer()),
  };
}

/** Anything that reads synchronously: an OPFS access handle in a worker, a file descriptor in Node. */
export function syncSource(
  name: string,
  size: number,
  readAt: (into: Uint8Array, offset: number) => number,
  close?: () => void,
): Source {
  return {
    name,
    size,
    read(offset, length, into) {
      const out = into();
      for (let done = 0; done < length; ) {
        const got = readAt(out.subarray(done), offset + done);
        if (got <= 0) throw new BezelError('io', `${name} ended at byte ${offset + done} of ${size}: it has changed.`);
        done += got;
      }
    },
    ...(close && { close }),
  };
}

/** A file on a server that answers HTTP range requests. */
export async function urlSource(url: string, init: RequestInit = {}): Promise<Source> {
  const fetchRange = async (offset: number, length: number): Promise<Response> => {
    const headers = new Headers(init.headers);
    headers.set('Range', `bytes=${offset}-${offset + length - 1}`);
    // Not from nor into the browser's cache: it is too small for models, and lets one request at a time to a file.
    const response = await fetch(url, { cache: 'no-store', ...init, headers });
    if (response.status === 404) throw new BezelError('not-found', `${url} does not exist (404).`);
    if (response.status !== 206) {
      await response.body?.cancel();
      throw new BezelError(
        'unsupported',
        `${url} cannot be read in parts: the server answered ${response.status} to a range request.`,
      );
    }
    return response;
  };
  const first = await fetchRange(0, 1);
  await first.arrayBuffer();
  const size = Number(/\/(\d+)$/.exec(first.headers.get('Content-Range') ?? '')?.[1]);
  if (!Number.isSafeInteger(size)) throw new BezelError('unsupported', `${url}: the server does not tell its size.`);
  return {
    name: url,
    size,
    async read(offset, length) {
      const bytes = new Uint8Array(await (await fetchRange(offset, length)).arrayBuffer());
      if (bytes.length !== length) {
        throw new BezelError('io', `${url}: asked for ${length} bytes at ${offset}, got ${bytes.length}.`);
      }
      return bytes;
    },
  };
}

export class Sources {
  private readonly open = new Map<number, Source>();
  private next = 0;

  constructor(private readonly heap: Heap) {}

  add(source: Source): number {
    this.open.set(++this.next, source);
    return this.next;
  }
  remove(id: number): void {
    this.open.get(id)?.close?.();
    this.open.delete(id);
  }

  readonly imports = {
    read: (id: number, offset: number, at: number, length: number, call: number): number => {
      const source = this.open.get(id);
      if (source === undefined) return this.heap.failure('io', 'The file was closed.');
      try {
        const pending = source.read(offset, length, () => this.heap.bytes(at, length));
        if (pending === undefined) return 0;
        return this.heap.answer(call, pending.then((bytes) => (this.heap.bytes(at, length).set(bytes), 0)), 'io');
      } catch (error) {
        return this.heap.failure(error instanceof BezelError ? error.kind : 'io', `${source.name}: ${(error as Error).message}`);
      }
    },
    close: (id: number): void => this.remove(id),
  };
}

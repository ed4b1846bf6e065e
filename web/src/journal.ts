// What the store remembers about a file, and how it survives dying at any moment.

import { Sha256, type Sha256State } from './sha256.js';

/** The part of FileSystemSyncAccessHandle that is used; tests give their own. */
export interface SyncFile {
  read(into: Uint8Array, options: { at: number }): number;
  write(bytes: Uint8Array, options: { at: number }): number;
  truncate(size: number): void;
  getSize(): number;
  flush(): void;
  close(): void;
}

export type Span = [begin: number, end: number];

/** A set of bytes as sorted spans that do not touch. */
export class Spans {
  readonly list: Span[] = [];

  constructor(list: readonly Span[] = []) {
    for (const [begin, end] of list) this.add(begin, end);
  }

  add(begin: number, end: number): void {
    if (begin >= end) return;
    let first = 0;
    while (first < this.list.length && this.list[first]![1] < begin) first++;
    let last = first;
    for (; last < this.list.length && this.list[last]![0] <= end; last++) {
      begin = Math.min(begin, this.list[last]![0]);
      end = Math.max(end, this.list[last]![1]);
    }
    this.list.splice(first, last - first, [begin, end]);
  }

  get total(): number {
    return this.list.reduce((sum, [begin, end]) => sum + end - begin, 0);
  }
  /** How many bytes are there from the beginning without a gap. */
  get front(): number {
    return this.list[0]?.[0] === 0 ? this.list[0][1] : 0;
  }
  /** The first missing bytes of a file of `size`, up to the next multiple of `chunk`. */
  firstGap(size: number, chunk: number): Span | undefined {
    const begin = this.front;
    if (begin >= size) return undefined;
    const next = this.list.find(([from]) => from > begin)?.[0] ?? size;
    return [begin, Math.min(next, size, (Math.floor(begin / chunk) + 1) * chunk)];
  }
}

/** One file of the store. Another format would need another folder: what cannot be read is swept away. */
export interface Entry {
  key: string;
  name: string;
  url: string;
  size: number;
  /** What the server says about the version of the file: ETag or Last-Modified, where it says anything. */
  version: string;
  /** The SHA-256 it must have; empty: unknown. */
  expected: string;
  /** The SHA-256 it has; empty until all of it was hashed and found good. */
  digest: string;
  /** Bytes that are on disk. */
  spans: Span[];
  /** Hash states of the beginning of the file: the last two checkpoints. */
  hashes: Sha256State[];
  added: number;
  lastUsed: number;
}

const slotBytes = 64 << 10;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

function decodeSlot(slot: Uint8Array): { sequence: number; entry: Entry } | undefined {
  const end = slot.indexOf(10);
  if (end < 66) return undefined;
  const body = slot.subarray(65, end);
  if (decoder.decode(slot.subarray(0, 64)) !== new Sha256().update(body).digest()) return undefined;
  return JSON.parse(decoder.decode(body)) as { sequence: number; entry: Entry };
}

function latest(bytes: Uint8Array): { sequence: number; entry: Entry } | undefined {
  const [a, b] = [decodeSlot(bytes.subarray(0, slotBytes)), decodeSlot(bytes.subarray(slotBytes, 2 * slotBytes))];
  return a && b ? (a.sequence > b.sequence ? a : b) : (a ?? b);
}

/** The entry in a journal's bytes; nothing where none was ever written completely. */
export function decodeJournal(bytes: Uint8Array): Entry | undefined {
  return latest(bytes)?.entry;
}

/** A file with two slots that are written in turns, each with its SHA-256: a write cut short ruins only the older one. */
export class Journal {
  private sequence = 0;
  entry: Entry | undefined;

  constructor(private readonly file: SyncFile) {
    const bytes = new Uint8Array(2 * slotBytes);
    file.read(bytes, { at: 0 });
    const found = latest(bytes);
    if (found === undefined) return;
    this.sequence = found.sequence;
    this.entry = found.entry;
  }

  write(entry: Entry): void {
    const sequence = this.sequence + 1;
    const body = encoder.encode(JSON.stringify({ sequence, entry }));
    const text = `${new Sha256().update(body).digest()} `;
    const slot = new Uint8Array(text.length + body.length + 1);
    if (slot.length > slotBytes) throw new Error(`The journal of ${entry.key} would have ${slot.length} bytes, more than ${slotBytes}.`);
    slot.set(encoder.encode(text));
    slot.set(body, text.length);
    slot[slot.length - 1] = 10;
    const written = this.file.write(slot, { at: (sequence % 2) * slotBytes });
    if (written !== slot.length) throw new Error(`Only ${written} of ${slot.length} bytes of the journal of ${entry.key} were written.`);
    this.file.flush();
    this.sequence = sequence;
    this.entry = entry;
  }

  close(): void {
    this.file.close();
  }
}

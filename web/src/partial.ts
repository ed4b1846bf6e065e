// A file that is being filled: its bytes, its journal and the hash of its beginning.
//
// The order is what makes it safe: bytes are written, then flushed, and only then does the journal say they are there.
// Whatever moment the tab dies at, the journal never claims bytes that are missing.

import { Journal, Spans, type Entry, type SyncFile } from './journal.js';
import { BezelError } from './protocol.js';
import { Sha256 } from './sha256.js';

/** Between hash states that the journal keeps. */
const checkpointBytes = 16 << 20;
/** Hashed without letting anything else run. */
const sliceBytes = 1 << 20;
/** Between journal entries while bytes arrive, in milliseconds: what a crash may cost. */
const syncEvery = 1000;

const nextTurn = (): Promise<void> =>
  new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel(); // unlike a timer, not slowed down by the browser
    port1.onmessage = () => (port1.close(), resolve());
    port2.postMessage(0);
  });

export class PartialFile {
  readonly spans: Spans;
  private hash = new Sha256();
  private hashing: Promise<void> | undefined;
  private synced = performance.now();
  private readonly buffer = new Uint8Array(sliceBytes);

  /** Takes up what `data` holds, according to `entry` as the journal told it. Both files stay the caller's to close. */
  constructor(
    private readonly data: SyncFile,
    private readonly journal: Journal,
    readonly entry: Entry,
  ) {
    // A part that is not as long as it was made is not the one the journal tells of.
    if (data.getSize() !== entry.size || !this.resumeHash()) Object.assign(entry, { spans: [], hashes: [], digest: '' });
    this.spans = new Spans(entry.spans);
    if (data.getSize() !== entry.size) data.truncate(entry.size); // all the space now: a full disk shows at once
    this.sync();
  }

  get size(): number {
    return this.entry.size;
  }
  get complete(): boolean {
    return this.spans.total === this.size;
  }

  /** Goes on from the last state, after comparing it with the one before and the bytes between them. */
  private resumeHash(): boolean {
    const [before, last] = this.entry.hashes.length === 2 ? this.entry.hashes : [new Sha256().save(), this.entry.hashes[0]];
    if (before === undefined || last === undefined) return true;
    this.hash = Sha256.resume(before);
    while (this.hash.length < last.length) this.hashSlice(last.length);
    return this.hash.save().words.join() === last.words.join();
  }

  private hashSlice(end: number): void {
    const at = this.hash.length;
    const slice = this.buffer.subarray(0, Math.min(sliceBytes, end - at));
    const got = this.data.read(slice, { at });
    if (got !== slice.length) throw new BezelError('io', `${this.entry.name}: only ${got} of ${slice.length} bytes could be read back at ${at}.`);
    this.hash.update(slice);
  }

  write(bytes: Uint8Array, at: number): void {
    const written = this.data.write(bytes, { at });
    if (written !== bytes.length) {
      throw new BezelError('io', `${this.entry.name}: only ${written} of ${bytes.length} bytes could be written at ${at}.`);
    }
    this.spans.add(at, at + bytes.length);
    this.hashing ??= this.hashFront().finally(() => (this.hashing = undefined));
    this.hashing.catch(() => {}); // finish() meets the same error again
    if (performance.now() - this.synced > syncEvery) this.sync();
  }

  /** Makes everything so far survive. */
  sync(): void {
    this.data.flush();
    this.entry.spans = this.spans.list.map(([begin, end]) => [begin, end]);
    this.journal.write(this.entry);
    this.synced = performance.now();
  }

  private async hashFront(signal?: AbortSignal): Promise<void> {
    while (this.hash.length < this.spans.front) {
      signal?.throwIfAborted();
      const checkpoint = (Math.floor(this.hash.length / checkpointBytes) + 1) * checkpointBytes;
      // Whole slices only, until the end: then every state can be saved.
      const end = Math.min(this.spans.front === this.size ? this.size : this.spans.front - (this.spans.front % sliceBytes), checkpoint);
      if (end <= this.hash.length) return;
      this.hashSlice(end);
      if (this.hash.length === checkpoint) this.entry.hashes = [...this.entry.hashes, this.hash.save()].slice(-2);
      await nextTurn();
    }
  }

  /** Hashes the rest; a digest that is not the expected one is an error, and the bytes are good for nothing. */
  async finish(signal?: AbortSignal, tell: (hashed: number) => void = () => {}): Promise<void> {
    while (this.hash.length < this.size) {
      await this.hashing;
      this.hashing = this.hashFront(signal).finally(() => (this.hashing = undefined));
      const timer = setInterval(() => tell(this.hash.length), 200);
      await this.hashing.finally(() => clearInterval(timer));
    }
    const { expected, name } = this.entry;
    const digest = this.hash.digest();
    if (expected !== '' && digest !== expected) {
      throw new DigestError(name, this.size, digest, expected);
    }
    this.entry.digest = digest;
    this.sync();
  }
}

/** The bytes are not the ones that were wanted. */
export class DigestError extends BezelError {
  constructor(name: string, size: number, digest: string, expected: string) {
    super('invalid', `${name}: its ${size} bytes have the SHA-256 ${digest}, but ${expected} was expected. They were discarded: download it again.`);
  }
}

// How far something is, and how fast.

export type StoreActivity =
  /** Another tab is at it; its progress is told here. */
  | 'waiting'
  | 'starting'
  | 'downloading'
  /** The network failed; `note` says how. */
  | 'retrying'
  /** Goes on by itself when the network is back. */
  | 'offline'
  /** The file on the server has changed: from the beginning. */
  | 'restarted'
  /** All bytes are there, their hash is being computed. */
  | 'verifying'
  | 'ready';

export interface StoreProgress {
  state: StoreActivity;
  /** Bytes, of the file or of the hash. */
  done: number;
  total: number;
  bytesPerSecond: number;
  /** None while it cannot be told. */
  secondsLeft: number | undefined;
  note?: string | undefined;
}

const shortestInterval = 100;
/** The rate is a mean over this time. */
const window = 5000;

export class Meter {
  private samples: { time: number; done: number }[] = [];
  private told = -Infinity;
  private state: StoreActivity | undefined;

  constructor(private readonly send: (progress: StoreProgress) => void) {}

  /** Changes of state are sent at once, the rest a few times a second. */
  tell(state: StoreActivity, done: number, total: number, note?: string): void {
    const time = performance.now();
    if (state === this.state && time - this.told < shortestInterval) return;
    // Only bytes that come count: not those that were there, and not a jump back.
    if (state !== 'downloading' && state !== 'verifying') this.samples = [];
    else if (state !== this.state || done < (this.samples.at(-1)?.done ?? 0)) this.samples = [{ time, done }];
    else this.samples.push({ time, done });
    while (this.samples.length > 2 && time - this.samples[0]!.time > window) this.samples.shift();
    this.state = state;
    this.told = time;
    const first = this.samples[0] ?? { time, done };
    const bytesPerSecond = time > first.time ? (1000 * (done - first.done)) / (time - first.time) : 0;
    const secondsLeft = bytesPerSecond > 0 ? (total - done) / bytesPerSecond : undefined;
    this.send({ state, done, total, bytesPerSecond, secondsLeft, note });
  }
}

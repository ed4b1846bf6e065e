// How fast answers come: what the performance panel shows.

import { Store } from './store';
import type { AnswerStats } from './tree';

export interface Sample {
  /** Seconds since the answer's first token. */
  at: number;
  rate: number;
}

export interface PerfState {
  answering: boolean;
  /** Tokens per second now, over the last second. */
  rate: number;
  /** Of the running answer or the last one. */
  samples: Sample[];
  answers: AnswerStats[];
  memory: { gpu: number; heap: number } | null;
}

const keptSamples = 240;
const keptAnswers = 20;

export class Perf {
  readonly store = new Store<PerfState>({ answering: false, rate: 0, samples: [], answers: [], memory: null });
  private times: number[] = [];
  private first = 0;
  private lastSample = 0;

  begin(): void {
    this.times = [];
    this.first = 0;
    this.lastSample = 0;
    this.store.set({ answering: true, rate: 0, samples: [] });
  }

  /** A piece of the answer came, which is a token nearly always. */
  tick(now = performance.now()): void {
    if (this.first === 0) this.first = this.lastSample = now;
    this.times.push(now);
    while (now - this.times[0]! > 2000) this.times.shift();
    if (now - this.lastSample < 250 || this.times.length < 2) return;
    this.lastSample = now;
    const rate = ((this.times.length - 1) * 1000) / (now - this.times[0]!);
    let { samples } = this.store.get();
    if (samples.length >= keptSamples) samples = samples.filter((_, i) => i % 2 === 1);
    this.store.set({ rate, samples: [...samples, { at: (now - this.first) / 1000, rate }] });
  }

  end(stats: AnswerStats | undefined): void {
    const { answers } = this.store.get();
    this.store.set({ answering: false, ...(stats && { answers: [...answers, stats].slice(-keptAnswers) }) });
  }
}

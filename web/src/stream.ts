// Something that is pushed to becomes something that can be iterated.

export class PushStream<T> implements AsyncIterable<T> {
  private readonly items: T[] = [];
  private ended = false;
  private error: unknown;
  private wake: (() => void) | undefined;

  /** `onReturn`: the reader left the loop early. */
  constructor(private readonly onReturn: () => void = () => {}) {}

  push(item: T): void {
    this.items.push(item);
    this.wake?.();
  }
  end(): void {
    this.ended = true;
    this.wake?.();
  }
  fail(error: unknown): void {
    this.error = error;
    this.end();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    try {
      for (;;) {
        while (this.items.length > 0) yield this.items.shift()!;
        if (this.ended) break;
        await new Promise<void>((resolve) => (this.wake = resolve));
        this.wake = undefined;
      }
      if (this.error !== undefined) throw this.error;
    } finally {
      if (!this.ended) this.onReturn();
    }
  }
}

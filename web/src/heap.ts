// The module's memory as the host's imports use it. Views are made anew each time: memory may have grown.

import { BezelError, errorKinds, type ErrorKind } from './protocol.js';

/** Returned by an import that will answer later; kLater in src/base/host_call_web.h. */
export const later = -0x7fffffff;

const decoder = new TextDecoder();
const encoder = new TextEncoder();

export class Heap {
  memory: WebAssembly.Memory | undefined;
  /** Continues the coroutine that waits for an answer. */
  resume: (call: number, answer: number) => void = () => {};
  private message = new Uint8Array();

  bytes(at: number, length: number): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.memory!.buffer as ArrayBuffer, at, length);
  }
  words(at: number, count: number): Uint32Array<ArrayBuffer> {
    return new Uint32Array(this.memory!.buffer as ArrayBuffer, at, count);
  }
  text(at: number, length: number): string {
    return decoder.decode(this.bytes(at, length));
  }

  /** What the engine reads with host.message after an answer. */
  setMessage(text: string): void {
    this.message = encoder.encode(text);
  }
  takeMessage(at: number, capacity: number): number {
    this.bytes(at, Math.min(capacity, this.message.length)).set(this.message.subarray(0, capacity));
    return this.message.length;
  }

  /** The number that stands for an error. */
  failure(kind: ErrorKind, message: string): number {
    this.setMessage(message);
    return -1 - errorKinds.indexOf(kind);
  }

  /** Answers `call` when `work` is done: its number, or its error. */
  answer(call: number, work: Promise<number>, kind: ErrorKind): number {
    work
      .catch((error: unknown) =>
        this.failure(error instanceof BezelError ? error.kind : kind, error instanceof Error ? error.message : String(error)),
      )
      .then((number) => this.resume(call, number));
    return later;
  }
}

// SHA-256 of bytes that come piece by piece, which WebCrypto does not offer. Its state can be saved and taken up again:
// a download that is resumed need not read gigabytes once more.
//
// The rounds are a WebAssembly function that is assembled here, unrolled: five times as fast as a loop in JavaScript,
// and independent of the engine's module.

const blockBytes = 64;
/** Where bytes lie in the function's memory of one page; the state is at 0. */
const dataAt = 1024;
const dataBytes = 60 << 10;

/** The first 32 bits after the point of the first primes' roots. */
function fractionalParts(count: number, power: number): Int32Array {
  const parts: number[] = [];
  for (let n = 2; parts.length < count; n++) {
    let prime = true;
    for (let d = 2; d * d <= n; d++) prime &&= n % d !== 0;
    if (prime) parts.push((n ** power % 1) * 2 ** 32);
  }
  return Int32Array.from(parts, (part) => part | 0);
}

const initial = fractionalParts(8, 1 / 2);

type Code = number[];

/** A signed number as WebAssembly writes it (LEB128). */
function leb(value: number): Code {
  const low = value & 0x7f;
  const rest = value >> 7;
  const last = (rest === 0 && low < 0x40) || (rest === -1 && low >= 0x40);
  return last ? [low] : [low | 0x80, ...leb(rest)];
}
/** The same for a length. */
const count = (value: number): Code => (value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...count(value >>> 7)]);

const get = (local: number): Code => [0x20, local];
const set = (local: number, ...value: Code): Code => [...value, 0x21, local];
const constant = (value: number): Code => [0x41, ...leb(value)];
const load = (address: Code, offset: number): Code => [...address, 0x28, 2, ...count(offset)];
const binary = (opcode: number) => (first: Code, ...others: Code[]): Code =>
  others.reduce((left, right) => [...left, ...right, opcode], first);
const add = binary(0x6a);
const and = binary(0x71);
const or = binary(0x72);
const xor = binary(0x73);
const shiftRight = (x: Code, bits: number): Code => [...x, ...constant(bits), 0x76];
const rotateRight = (x: Code, bits: number): Code => [...x, ...constant(bits), 0x78];

/** A module with `memory` and `blocks(begin, end)`, which hashes whole blocks of that memory into the state at 0. */
function assemble(): Uint8Array<ArrayBuffer> {
  const [at, end, firstVariable, firstWord, temporary] = [0, 1, 2, 10, 26];
  const word = (i: number): number => firstWord + (i % 16);
  const bigEndian = (x: Code): Code =>
    or(and(rotateRight(x, 24), constant(0x00ff00ff)), and(rotateRight(x, 8), constant(0xff00ff00 | 0)));
  const rounds = fractionalParts(64, 1 / 3);

  const body: Code = [];
  for (let i = 0; i < 8; i++) body.push(...set(firstVariable + i, ...load(constant(0), 4 * i)));
  for (let i = 0; i < 16; i++) body.push(...set(word(i), ...load(get(at), 4 * i)), ...set(word(i), ...bigEndian(get(word(i)))));
  for (let i = 0; i < 64; i++) {
    if (i >= 16) {
      const [x, y] = [get(word(i + 1)), get(word(i + 14))];
      const s0 = xor(rotateRight(x, 7), rotateRight(x, 18), shiftRight(x, 3));
      const s1 = xor(rotateRight(y, 17), rotateRight(y, 19), shiftRight(y, 10));
      body.push(...set(word(i), ...add(get(word(i)), s0, get(word(i + 9)), s1)));
    }
    // The variables change their names from round to round, so none is copied.
    const name = (j: number): number => firstVariable + ((j + 64 - i) % 8);
    const [a, b, c, d, e, f, g, h] = [0, 1, 2, 3, 4, 5, 6, 7].map((j) => get(name(j))) as [Code, Code, Code, Code, Code, Code, Code, Code];
    const s1 = xor(rotateRight(e, 6), rotateRight(e, 11), rotateRight(e, 25));
    const choice = xor(g, and(e, xor(f, g)));
    const s0 = xor(rotateRight(a, 2), rotateRight(a, 13), rotateRight(a, 22));
    const majority = or(and(a, b), and(c, or(a, b)));
    body.push(...set(temporary, ...add(h, s1, choice, constant(rounds[i]!), get(word(i)))));
    body.push(...set(name(3), ...add(d, get(temporary))), ...set(name(7), ...add(get(temporary), s0, majority)));
  }
  for (let i = 0; i < 8; i++) {
    body.push(...constant(0), ...add(load(constant(0), 4 * i), get(firstVariable + i)), 0x36, 2, 4 * i);
  }
  const next: Code = [...set(at, ...add(get(at), constant(blockBytes))), ...get(at), ...get(end), 0x49, 0x0d, 0];

  const code: Code = [1, 25, 0x7f, 0x03, 0x40, ...body, ...next, 0x0b, 0x0b]; // 25 locals; loop { body; while at < end }
  const text = (name: string): Code => [name.length, ...new TextEncoder().encode(name)];
  const section = (id: number, ...content: Code): Code => [id, ...count(content.length), ...content];
  return Uint8Array.from([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, 1, 0x60, 2, 0x7f, 0x7f, 0), // a type: (i32, i32) -> nothing
    ...section(3, 1, 0),
    ...section(5, 1, 0, 1), // one page
    ...section(7, 2, ...text('memory'), 2, 0, ...text('blocks'), 0, 0),
    ...section(10, 1, ...count(code.length), ...code),
  ]);
}

interface Rounds {
  memory: WebAssembly.Memory;
  blocks(begin: number, end: number): void;
}
let shared: Rounds | undefined;
function rounds(): Rounds {
  shared ??= new WebAssembly.Instance(new WebAssembly.Module(assemble())).exports as unknown as Rounds;
  return shared;
}

/** Where hashing stood after `length` bytes, a multiple of 64. */
export interface Sha256State {
  length: number;
  words: number[];
}

export class Sha256 {
  private readonly words = initial.slice();
  private readonly rest = new Uint8Array(blockBytes);
  private total = 0;

  /** Bytes hashed so far. */
  get length(): number {
    return this.total;
  }

  static resume(state: Sha256State): Sha256 {
    if (!Number.isSafeInteger(state.length) || state.length < 0 || state.length % blockBytes !== 0 || state.words.length !== 8) {
      throw new Error('This is no state of SHA-256.');
    }
    const hash = new Sha256();
    hash.words.set(state.words);
    hash.total = state.length;
    return hash;
  }

  /** Possible after a multiple of 64 bytes only. */
  save(): Sha256State {
    if (this.total % blockBytes !== 0) throw new Error(`SHA-256 cannot be saved after ${this.total} bytes: not a multiple of 64.`);
    return { length: this.total, words: Array.from(this.words) };
  }

  update(bytes: Uint8Array): this {
    let at = 0;
    const held = this.total % blockBytes;
    this.total += bytes.length;
    if (held > 0) {
      at = Math.min(blockBytes - held, bytes.length);
      this.rest.set(bytes.subarray(0, at), held);
      if (held + at < blockBytes) return this;
      this.blocks(this.rest);
    }
    const whole = bytes.length - ((bytes.length - at) % blockBytes);
    this.blocks(bytes.subarray(at, whole));
    this.rest.set(bytes.subarray(whole));
    return this;
  }

  /** Of everything so far, in hexadecimal; more may follow. */
  digest(): string {
    const held = this.total % blockBytes;
    const end = new Uint8Array(held < blockBytes - 8 ? blockBytes : 2 * blockBytes);
    end.set(this.rest.subarray(0, held));
    end[held] = 0x80;
    new DataView(end.buffer).setBigUint64(end.length - 8, BigInt(this.total) * 8n);
    const last = new Sha256();
    last.words.set(this.words);
    last.blocks(end);
    return Array.from(last.words, (word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
  }

  private blocks(bytes: Uint8Array): void {
    const { memory, blocks } = rounds();
    const state = new Int32Array(memory.buffer, 0, 8);
    const data = new Uint8Array(memory.buffer, dataAt, dataBytes);
    state.set(this.words);
    for (let at = 0; at < bytes.length; at += dataBytes) {
      const some = bytes.subarray(at, at + dataBytes);
      data.set(some);
      blocks(dataAt, dataAt + some.length);
    }
    this.words.set(state);
  }
}

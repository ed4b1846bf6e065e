// Fetches the missing bytes of a file by HTTP: ranges in parallel, with patience where the network fails.

import { Spans, type Span } from './journal.js';
import { BezelError } from './protocol.js';

export interface Tuning {
  /** Bytes of a request. */
  chunk: number;
  /** Requests at a time. */
  connections: number;
  /** How often a request that brings nothing is repeated. */
  retries: number;
  /** Milliseconds before the first repetition; each further one waits twice as long. */
  retryDelay: number;
  /** Milliseconds without a byte after which a connection is given up. */
  stall: number;
}
export const defaultTuning: Tuning = { chunk: 16 << 20, connections: 4, retries: 5, retryDelay: 500, stall: 30_000 };
const longestDelay = 30_000;
const offlineDelay = 1000;

export type Activity = 'downloading' | 'retrying' | 'offline';

export interface Remote {
  url: string;
  headers?: Record<string, string> | undefined;
  tuning: Tuning;
  signal: AbortSignal;
  tell(activity: Activity, note?: string): void;
}

/** What identifies the bytes behind a URL. */
export interface Version {
  size: number;
  /** ETag or Last-Modified; empty where the server says neither. */
  version: string;
}

/** What was begun earlier; without a version any will do. */
export type Known = Pick<Version, 'size'> & Partial<Version>;

/** The file at the URL is no longer the one that was begun. */
export class ChangedError extends Error {}
/** Worth another try. */
class NetworkError extends Error {
  constructor(
    message: string,
    readonly delay = 0,
  ) {
    super(message);
  }
}

const sleep = (milliseconds: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      globalThis.removeEventListener?.('online', end);
      signal.removeEventListener('abort', end);
      if (signal.aborted) reject(signal.reason as Error);
      else resolve();
    };
    const timer = setTimeout(end, milliseconds);
    globalThis.addEventListener?.('online', end);
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
  });

/** Waits between attempts, until there were too many. Without a network it waits for one. */
class Patience {
  private failures = 0;
  constructor(private readonly remote: Remote) {}

  progressed(): void {
    this.failures = 0;
  }

  async failed(error: unknown): Promise<void> {
    const { signal, tuning, url } = this.remote;
    signal.throwIfAborted();
    if (!(error instanceof NetworkError)) throw error;
    if (globalThis.navigator?.onLine === false) {
      this.remote.tell('offline', 'The browser is offline.');
      await sleep(offlineDelay, signal);
    } else {
      if (++this.failures > tuning.retries) {
        throw new BezelError('io', `${url} could not be fetched: ${error.message} What has arrived is kept; downloading again goes on from there.`);
      }
      this.remote.tell('retrying', error.message);
      const delay = Math.min(longestDelay, tuning.retryDelay * 2 ** (this.failures - 1)) * (0.75 + Math.random() / 2);
      await sleep(Math.max(delay, error.delay), signal);
    }
  }
}

interface Answer extends Version {
  /** Whether only the requested range comes, and not all of the file. */
  ranges: boolean;
  /** Where in the file the body begins. */
  at: number;
  /** The next bytes of the body; nothing at its end. */
  read(): Promise<Uint8Array | undefined>;
  stop(): void;
}

/** The size where the answer itself does not show it: other origins must allow reading Content-Range. */
async function askSize(remote: Remote): Promise<number> {
  const { url, headers, signal } = remote;
  const response = await fetch(url, { method: 'HEAD', headers: headers ?? {}, signal, cache: 'no-store' });
  return response.ok ? lengthOf(response) : NaN;
}
function lengthOf(response: Response): number {
  const text = response.headers.get('Content-Length');
  // Of compressed bytes the length says nothing about the file.
  return text === null || response.headers.has('Content-Encoding') ? NaN : Number(text);
}

function refusal(url: string, response: Response): Error {
  const { status } = response;
  if (status === 416) return new ChangedError('The file at the URL has become shorter.');
  if (status === 404 || status === 410) return new BezelError('not-found', `${url} does not exist (HTTP ${status}).`);
  if (status === 408 || status === 425 || status === 429 || status >= 500) {
    const wait = 1000 * Number(response.headers.get('Retry-After') ?? 0) || 0;
    return new NetworkError(`The server answered HTTP ${status}.`, Math.min(wait, longestDelay));
  }
  const why = status === 401 || status === 403 ? ': it wants a permission that this request does not carry' : '';
  return new BezelError('io', `${url}: the server refused with HTTP ${status}${why}.`);
}

async function request(remote: Remote, [begin, end]: Span, known: Known | undefined): Promise<Answer> {
  const { url, tuning } = remote;
  const stop = new AbortController();
  let timer = setTimeout(() => stop.abort(), tuning.stall);
  try {
    const response = await fetch(url, {
      headers: { ...remote.headers, Range: `bytes=${begin}-${end - 1}` },
      signal: AbortSignal.any([remote.signal, stop.signal]),
      cache: 'no-store', // the HTTP cache would keep a second copy, and let one request at a time through
    });
    if (response.status !== 200 && response.status !== 206) {
      stop.abort();
      throw refusal(url, response);
    }
    const ranges = response.status === 206;
    const told = Number(/\/(\d+)$/.exec(response.headers.get('Content-Range') ?? '')?.[1] ?? NaN);
    const size = ranges ? (Number.isNaN(told) ? (known?.size ?? (await askSize(remote))) : told) : lengthOf(response);
    const version = (response.headers.get('ETag') ?? response.headers.get('Last-Modified') ?? '').replace(/^W\//, '');
    if (!Number.isSafeInteger(size) || size <= 0) {
      stop.abort();
      throw new BezelError('unsupported', `${url}: the server does not tell how large the file is.`);
    }
    if (known && (known.size !== size || (known.version ?? version) !== version)) {
      stop.abort();
      throw new ChangedError('The file at the URL has changed since the download was begun.');
    }
    const reader = response.body!.getReader();
    const read = async (): Promise<Uint8Array | undefined> => {
      timer = setTimeout(() => stop.abort(), tuning.stall);
      try {
        return (await reader.read()).value;
      } catch (error) {
        throw networkError(error, stop.signal, tuning);
      } finally {
        clearTimeout(timer);
      }
    };
    return { size, version, ranges, at: ranges ? begin : 0, read, stop: () => stop.abort() };
  } catch (error) {
    throw networkError(error, stop.signal, tuning);
  } finally {
    clearTimeout(timer);
  }
}

/** What fetch and its bodies throw carries no reason that a program could read. */
function networkError(error: unknown, stalled: AbortSignal, tuning: Tuning): unknown {
  if (error instanceof BezelError || error instanceof ChangedError || error instanceof NetworkError) return error;
  if (stalled.aborted) return new NetworkError(`Nothing came for ${tuning.stall / 1000} seconds.`);
  return new NetworkError(`The network failed, or the server does not let this page read the file (${(error as Error).message}).`);
}

/** A download whose first request has been answered. */
export interface Begun extends Version {
  /** Without ranges the whole file comes in one stream, and what is there already is skipped. */
  ranges: boolean;
  fetchInto(target: Target): Promise<void>;
  cancel(): void;
}

/** Where bytes go. */
export interface Target {
  readonly spans: Spans;
  readonly size: number;
  write(bytes: Uint8Array, at: number): void;
  sync(): void;
}

/** Asks for the first missing bytes, and so learns all there is to know. */
export async function begin(given: Remote, spans: Spans, known?: Known): Promise<Begun> {
  const { chunk, connections } = given.tuning;
  // A connection that fails for good ends the others.
  const own = new AbortController();
  const remote = { ...given, signal: AbortSignal.any([given.signal, own.signal]) };
  const patience = new Patience(remote);
  let first: Answer | undefined;
  while (first === undefined) {
    try {
      first = await request(remote, spans.firstGap(known?.size ?? Infinity, chunk)!, known);
    } catch (error) {
      await patience.failed(error);
    }
  }
  const { size, version, ranges } = first;

  const fetchSpan = async (target: Target, [begin, end]: Span): Promise<void> => {
    const patience = new Patience(remote);
    for (let at = begin; at < end; ) {
      let answer = first;
      first = undefined;
      try {
        if (answer === undefined || (answer.ranges && answer.at !== at)) {
          answer?.stop();
          answer = await request(remote, [at, end], { size, version });
        }
        if (ranges && !answer.ranges && at > 0) throw new NetworkError('The server stopped answering ranges.');
        for (let position = answer.at; at < end; ) {
          const value = await answer.read();
          if (value === undefined) throw new NetworkError(`The answer ended at byte ${position}, before byte ${end}.`);
          remote.signal.throwIfAborted();
          const bytes = value.subarray(Math.max(0, at - position), Math.max(0, end - position));
          position += value.length;
          if (bytes.length === 0) continue;
          target.write(bytes, at);
          at += bytes.length;
          patience.progressed();
          remote.tell('downloading');
        }
        // To its end, so that the connection serves the next request.
        if (answer.ranges) await answer.read().catch(() => {});
      } catch (error) {
        await patience.failed(error);
      } finally {
        answer?.stop();
      }
    }
    target.sync();
  };

  return {
    size,
    version,
    ranges,
    cancel: () => own.abort(),
    async fetchInto(target) {
      const taken = new Spans(target.spans.list);
      const connection = async (): Promise<void> => {
        for (let gap; (gap = taken.firstGap(size, ranges ? chunk : size)); ) {
          taken.add(...gap);
          await fetchSpan(target, gap);
        }
      };
      const all = Array.from({ length: ranges ? connections : 1 }, () => connection().catch((error: unknown) => own.abort(error)));
      await Promise.all(all); // each must have ended before the file may be closed
      remote.signal.throwIfAborted();
    },
  };
}

// The engine in a Dedicated Worker: messages in, messages out.

import { EngineHost, theStore } from './host.js';
import { type CallOptions } from './module.js';
import { BezelError, type FromWorker, type ToWorker } from './protocol.js';
import { runStoreCall } from './store_client.js';

const scope = globalThis as unknown as {
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
  postMessage(message: FromWorker, transfer?: Transferable[]): void;
};

let host: EngineHost | undefined;
const running = new Map<number, AbortController>();

/** Runs it so that a `stop` with its number ends it. */
async function stoppable(id: number, run: (options: CallOptions) => Promise<unknown>): Promise<unknown> {
  const stop = new AbortController();
  running.set(id, stop);
  try {
    return await run({ signal: stop.signal, onEvent: (event) => scope.postMessage({ type: 'event', id, event }) });
  } finally {
    running.delete(id);
  }
}

async function answer(message: Exclude<ToWorker, { type: 'stop' }>): Promise<unknown> {
  if (message.type === 'start') {
    host = await EngineHost.create({ wasm: fetch(message.wasm), gpu: navigator.gpu });
    return undefined;
  }
  if (message.type === 'store') {
    const store = await theStore();
    return stoppable(message.id, (options) => runStoreCall(store, message.call, options));
  }
  if (host === undefined) throw new BezelError('invalid', 'The engine was not started.');
  switch (message.type) {
    case 'source':
      return host.addSource(message.spec);
    case 'heap':
      return host.heapBytes();
    case 'state': {
      const engine = host;
      return stoppable(message.id, (options) => engine.callState(message.call, options));
    }
    case 'call': {
      const engine = host;
      return stoppable(message.id, (options) => engine.call(message.method, message.args as never, options));
    }
  }
}

scope.onmessage = ({ data }) => {
  if (data.type === 'stop') {
    running.get(data.id)?.abort();
    return;
  }
  const { id } = data;
  answer(data).then(
    (value) => {
      const numbers = (value as { numbers?: Float32Array<ArrayBuffer> } | undefined)?.numbers;
      scope.postMessage({ type: 'result', id, value }, numbers ? [numbers.buffer] : []);
    },
    (error: unknown) => {
      const { kind, detail } = error instanceof BezelError ? error : ({ kind: 'crashed', detail: undefined } as const);
      scope.postMessage({ type: 'error', id, kind, detail, message: error instanceof Error ? error.message : String(error) });
    },
  );
};

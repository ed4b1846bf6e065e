// The engine in a Dedicated Worker: messages in, messages out.

import { EngineHost } from './host.js';
import { BezelError, type FromWorker, type ToWorker } from './protocol.js';

const scope = globalThis as unknown as {
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
  postMessage(message: FromWorker, transfer?: Transferable[]): void;
};

let host: EngineHost | undefined;
const running = new Map<number, AbortController>();

async function answer(message: Exclude<ToWorker, { type: 'stop' }>): Promise<unknown> {
  if (message.type === 'start') {
    host = await EngineHost.create({ wasm: fetch(message.wasm), gpu: navigator.gpu });
    return undefined;
  }
  if (host === undefined) throw new BezelError('invalid', 'The engine was not started.');
  switch (message.type) {
    case 'source':
      return host.addSource(message.spec);
    case 'heap':
      return host.heapBytes();
    case 'call': {
      const stop = new AbortController();
      running.set(message.id, stop);
      try {
        return await host.call(message.method, message.args as never, {
          signal: stop.signal,
          onEvent: (event) => scope.postMessage({ type: 'event', id: message.id, event }),
        });
      } finally {
        running.delete(message.id);
      }
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
      const kind = error instanceof BezelError ? error.kind : 'crashed';
      scope.postMessage({ type: 'error', id, kind, message: error instanceof Error ? error.message : String(error) });
    },
  );
};

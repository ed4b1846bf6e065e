// Will a model fit this device, and how is it best loaded? From its header and the adapter's limits alone.

import { type DeviceInfo, type ModelCost } from './protocol.js';

export interface Fit {
  verdict: 'yes' | 'maybe' | 'no';
  /** Sentences for people: what is short, what helps. */
  reasons: string[];
  download: number;
  /** Bytes on the GPU with the settings below. */
  gpuBytes: number;
  /** What the GPU probably has; browsers do not tell. */
  gpuGuess: number;
  settings: { context: number; kvF16: boolean };
  storage: { needed: number; free: number } | undefined;
}

const gib = 2 ** 30;
const show = (bytes: number): string => (bytes >= gib ? `${(bytes / gib).toFixed(1)} GB` : `${Math.ceil(bytes / 2 ** 20)} MB`);

// Adapters with large buffers have large memories: the only hint that browsers give.
function guessMemory(device: DeviceInfo | undefined): number {
  if (device === undefined || device.software) return 2 * gib;
  if (device.maxBuffer >= 4 * gib) return 12 * gib;
  return device.maxBuffer >= 2 * gib ? 6 * gib : 3 * gib;
}

export function fitOf(cost: ModelCost, download: number, device: DeviceInfo | undefined, estimate: StorageEstimate | undefined): Fit {
  const guess = guessMemory(device);
  const reasons: string[] = [];
  const cache = (context: number, f16: boolean): number => (cost.kvFixed + cost.kvPerToken * context) * (f16 ? 2 : 4);
  const room = guess - cost.weightBytes;
  let settings = { context: 1024, kvF16: true };
  for (const context of [32768, 16384, 8192, 4096, 2048, 1024].filter((n) => n <= cost.context || n === 1024)) {
    const kvF16 = cache(context, false) > room / 2;
    if (cache(context, kvF16) <= room / 2) {
      settings = { context: Math.min(context, cost.context), kvF16 };
      break;
    }
  }
  const gpuBytes = cost.weightBytes + cache(settings.context, settings.kvF16);
  let verdict: Fit['verdict'] = 'yes';
  const worse = (to: Fit['verdict'], why: string): void => {
    reasons.push(why);
    if (verdict !== 'no') verdict = to;
  };
  if (gpuBytes > guess) worse('maybe', `It needs ${show(gpuBytes)} of GPU memory; this device probably has about ${show(guess)}.`);
  if (device && cost.largestRow > device.maxBinding) {
    worse('no', `A piece of ${show(cost.largestRow)} is larger than the ${show(device.maxBinding)} that this GPU binds.`);
  }
  if (!device) worse('maybe', 'Without WebGPU the CPU computes, which is slow for anything but tiny models.');
  let storage: Fit['storage'];
  if (estimate?.quota !== undefined) {
    storage = { needed: download, free: estimate.quota - (estimate.usage ?? 0) };
    if (storage.free < download) reasons.push(`To keep it, ${show(download)} of storage are needed; ${show(storage.free)} are free.`);
  }
  return { verdict, reasons, download, gpuBytes, gpuGuess: guess, settings, storage };
}

// Will a model fit this device, and how is it best loaded? From its header and the adapter's limits alone.

import { type DeviceInfo, type KvType, type ModelCost } from './protocol.js';

export interface Fit {
  verdict: 'yes' | 'maybe' | 'no';
  /** Sentences for people: what is short, what helps. */
  reasons: string[];
  download: number;
  /** Bytes on the GPU with the settings below. */
  gpuBytes: number;
  /** What the GPU probably has; browsers do not tell. */
  gpuGuess: number;
  settings: { context: number; kv: KvType };
  storage: { needed: number; free: number } | undefined;
}

const gib = 2 ** 30;
const kvBytes = { f32: 4, f16: 2, q8: 36 / 32 }; // of a number
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
  const cache = (context: number, kv: KvType): number => (cost.kvFixed + cost.kvPerToken * context) * kvBytes[kv];
  const room = guess - cost.weightBytes;
  let settings: Fit['settings'] = { context: 1024, kv: 'f16' };
  for (const context of [32768, 16384, 8192, 4096, 2048, 1024].filter((n) => n <= cost.context || n === 1024)) {
    const kv = cache(context, 'f32') > room / 2 ? 'f16' : 'f32';
    if (cache(context, kv) <= room / 2) {
      settings = { context: Math.min(context, cost.context), kv };
      break;
    }
  }
  const gpuBytes = cost.weightBytes + cache(settings.context, settings.kv);
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

// WAV files: samples without any codec, read where there is no AudioContext (workers, Node), and exactly everywhere.

import { BezelError } from './protocol.js';

/** Numbers from -1 to 1, those of all channels in turn. */
export interface Recording {
  samples: Float32Array<ArrayBuffer>;
  rate: number;
  channels: number;
}

const broken = (why: string): BezelError => new BezelError('invalid', `The WAV file is damaged: ${why}.`);

type ReadSample = (view: DataView, at: number) => number;
const integers: Record<number, ReadSample> = {
  8: (view, at) => (view.getUint8(at) - 128) / 128,
  16: (view, at) => view.getInt16(at, true) / 32768,
  24: (view, at) => (view.getInt16(at + 1, true) * 256 + view.getUint8(at)) / 8388608,
  32: (view, at) => view.getInt32(at, true) / 2147483648,
};
const floats: Record<number, ReadSample> = {
  32: (view, at) => view.getFloat32(at, true),
  64: (view, at) => view.getFloat64(at, true),
};

const text = (view: DataView, at: number): string => String.fromCharCode(...new Uint8Array(view.buffer, view.byteOffset + at, 4));

export function isWav(bytes: Uint8Array): boolean {
  if (bytes.length < 12) return false;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return text(view, 0) === 'RIFF' && text(view, 8) === 'WAVE';
}

/** Undefined: its samples are compressed, or kept in a way that is not known here. */
export function readWav(bytes: Uint8Array): Recording | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let read: ReadSample | undefined;
  let [channels, rate, step, known] = [0, 0, 0, false];
  for (let at = 12; at + 8 <= bytes.length; ) {
    const [name, given] = [text(view, at), view.getUint32(at + 4, true)];
    at += 8;
    const size = Math.min(given, bytes.length - at); // whoever streams a file does not know its size beforehand
    if (name === 'fmt ') {
      if (size < 16) throw broken('its description is too short');
      const bits = view.getUint16(at + 14, true);
      const extensible = view.getUint16(at, true) === 0xfffe && size >= 26;
      const format = view.getUint16(extensible ? at + 24 : at, true);
      read = (format === 1 ? integers : format === 3 ? floats : {})[bits];
      [channels, rate, step, known] = [view.getUint16(at + 2, true), view.getUint32(at + 4, true), bits / 8, true];
      if (read === undefined) return undefined;
      if (channels === 0 || rate === 0) throw broken(`it has ${channels} channels of ${rate} Hz`);
    } else if (name === 'data') {
      if (!known) throw broken('its samples come before their description');
      const samples = new Float32Array(Math.floor(size / (step * channels)) * channels);
      for (let i = 0; i < samples.length; i++) samples[i] = read!(view, at + i * step);
      return { samples, rate, channels };
    }
    at += size + (size % 2);
  }
  throw broken('it has no samples');
}

/** With 16 bits a sample. */
export function writeWav({ samples, rate, channels }: Recording): Blob {
  const bytes = 2 * samples.length;
  const view = new DataView(new ArrayBuffer(44 + bytes));
  const put = (at: number, name: string): void => [...name].forEach((letter, i) => view.setUint8(at + i, letter.charCodeAt(0)));
  put(0, 'RIFF');
  view.setUint32(4, 36 + bytes, true);
  put(8, 'WAVEfmt ');
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, channels, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, 2 * channels * rate, true);
  view.setUint16(32, 2 * channels, true);
  view.setUint16(34, 16, true);
  put(36, 'data');
  view.setUint32(40, bytes, true);
  samples.forEach((sample, i) => view.setInt16(44 + 2 * i, Math.max(-32768, Math.min(32767, Math.round(sample * 32768))), true));
  return new Blob([view.buffer], { type: 'audio/wav' });
}

// WAV files: samples without any codec. The engine reads them itself, exactly and wherever it runs.

/** Numbers from -1 to 1, those of all channels in turn. */
export interface Recording {
  samples: Float32Array<ArrayBuffer>;
  rate: number;
  channels: number;
}

export async function isWav(file: Blob): Promise<boolean> {
  const start = new TextDecoder('latin1').decode(await file.slice(0, 12).arrayBuffer());
  return /^(RIFF|RF64|BW64).{4}WAVE$/s.test(start);
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

// Pictures, recordings and videos become pixels and samples, by what the platform has.

import { BezelError } from './protocol.js';
import { type Recording } from './wav.js';

/** Three or four bytes a pixel, row by row; a fourth, transparency, is dropped. */
export interface Pixels {
  data: Uint8Array | Uint8ClampedArray;
  width: number;
  height: number;
}
/** An AudioBuffer, or what has its shape. */
export interface Channels {
  numberOfChannels: number;
  sampleRate: number;
  length: number;
  getChannelData(channel: number): Float32Array;
}
export interface Frame {
  pixels: Pixels;
  seconds: number;
}

/** The engine scales down to fewer than 3 megapixels; photos are made handier before they reach its memory. */
const mostPixels = 16e6;
/** The engine hears 30 s. */
const mostSeconds = 31;
/** Of codecs, whose own rate browsers do not tell; the engine goes on to the model's. */
const decodedRate = 48000;

const reason = (error: unknown): string => (error instanceof Error ? error.message : String(error)).replace(/\.$/, '');
export const stopIf = (signal: AbortSignal | undefined): void => {
  if (signal?.aborted) throw new BezelError('cancelled', 'The request was stopped.');
};

export async function decodePicture(source: ImageBitmapSource): Promise<Pixels> {
  if (typeof createImageBitmap === 'undefined' || typeof OffscreenCanvas === 'undefined') {
    throw new BezelError('unsupported', 'Files of pictures cannot be decoded here. Give pixels: { data, width, height }, with 3 or 4 bytes each.');
  }
  const options: ImageBitmapOptions = { premultiplyAlpha: 'none', colorSpaceConversion: 'none', imageOrientation: 'from-image' };
  const bitmap = await createImageBitmap(source, options).catch((error: unknown) => {
    throw new BezelError('invalid', `The picture could not be decoded: ${reason(error)}.`);
  });
  try {
    const scale = Math.min(1, Math.sqrt(mostPixels / (bitmap.width * bitmap.height)));
    const [width, height] = [bitmap.width, bitmap.height].map((side) => Math.max(1, Math.round(side * scale))) as [number, number];
    // A canvas multiplies colours by their opacity: opaque pixels come out exactly, translucent ones are rounded, and
    // what is fully transparent becomes black.
    const context = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true })!;
    context.imageSmoothingQuality = 'high';
    context.drawImage(bitmap, 0, 0, width, height);
    return { data: context.getImageData(0, 0, width, height).data, width, height };
  } catch (error) {
    throw new BezelError('invalid', `The picture could not be read: ${reason(error)}.`); // a canvas of another site, say
  } finally {
    if (bitmap !== source) bitmap.close();
  }
}

/** Samples of all channels in turn, cut to what the engine listens to. */
export function interleaved(buffer: Channels): Recording {
  const { numberOfChannels: channels, sampleRate: rate } = buffer;
  const frames = Math.min(buffer.length, Math.ceil(mostSeconds * rate));
  const samples = new Float32Array(frames * channels);
  for (let channel = 0; channel < channels; channel++) {
    const from = buffer.getChannelData(channel);
    for (let i = 0; i < frames; i++) samples[i * channels + channel] = from[i]!;
  }
  return { samples, rate, channels };
}

export function shortened({ samples, rate, channels }: Recording): Recording {
  return { samples: samples.slice(0, Math.ceil(mostSeconds * rate) * channels), rate, channels };
}

export async function decodeSound(file: Blob): Promise<Recording> {
  if (typeof OfflineAudioContext === 'undefined') {
    throw new BezelError('unsupported', 'Only WAV files can be decoded here. Give one, or samples: { samples, rate, channels }.');
  }
  const context = new OfflineAudioContext(1, 1, decodedRate);
  const buffer = await context.decodeAudioData(await file.arrayBuffer()).catch((error: unknown) => {
    throw new BezelError('invalid', `The recording could not be decoded: ${reason(error)}.`);
  });
  return interleaved(buffer);
}

const happens = (video: HTMLVideoElement, event: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const done = (then: () => void) => (): void => {
      video.removeEventListener(event, good);
      video.removeEventListener('error', bad);
      then();
    };
    const good = done(resolve);
    const bad = done(() => reject(new BezelError('invalid', `The video could not be decoded: ${video.error?.message || 'its format is not known'}.`)));
    video.addEventListener(event, good);
    video.addEventListener('error', bad);
  });

// Resolves when a picture of no later than `seconds` is what would be drawn: one that is later is from before a seek.
const shown = (video: HTMLVideoElement, seconds: number): Promise<void> =>
  new Promise((resolve) => {
    if (!('requestVideoFrameCallback' in video)) return resolve();
    const look: VideoFrameRequestCallback = (_, { mediaTime }) => (mediaTime <= seconds + 0.001 ? resolve() : void video.requestVideoFrameCallback(look));
    video.requestVideoFrameCallback(look);
  });

/** Does what makes the video turn to `seconds`, and waits until that picture can be drawn. */
async function turnTo(video: HTMLVideoElement, seconds: number, event: string, act: () => void): Promise<void> {
  const arrived = happens(video, event);
  const picture = shown(video, seconds);
  act();
  await arrived;
  // The event comes when the picture is decoded; on a busy machine the one before is drawn for some time yet, or none.
  // A page nobody sees is not told of pictures: there a second is enough.
  await Promise.race([picture, new Promise((resolve) => setTimeout(resolve, 1000))]);
}

const seek = (video: HTMLVideoElement, seconds: number): Promise<void> =>
  turnTo(video, seconds, 'seeked', () => {
    video.currentTime = seconds;
  });

/** Frames of a video, equally far apart: `most` of them at most, and no more than two a second. */
export async function* videoFrames(source: Blob | HTMLVideoElement, most: number, signal: AbortSignal | undefined): AsyncGenerator<Frame, void> {
  if (typeof HTMLVideoElement === 'undefined') {
    throw new BezelError('unsupported', 'Videos can only be decoded in a page. Give { frames: [{ image, seconds }] }.');
  }
  const given = source instanceof HTMLVideoElement;
  const video = given ? source : document.createElement('video');
  const address = given ? undefined : URL.createObjectURL(source);
  const before = given ? { at: video.currentTime, paused: video.paused } : undefined;
  try {
    if (address) {
      video.muted = true;
      video.preload = 'auto';
      await turnTo(video, Infinity, 'loadeddata', () => {
        video.src = address;
      });
    } else {
      video.pause();
      if (video.readyState < 2) await happens(video, 'loadeddata');
    }
    if (!Number.isFinite(video.duration)) await seek(video, 1e7); // a recording that was streamed tells its length at its end
    const length = Number.isFinite(video.duration) ? video.duration : video.currentTime;
    const count = Math.max(1, Math.min(most, Math.ceil(2 * length)));
    for (let i = 0; i < count; i++) {
      stopIf(signal);
      const seconds = (i * length) / count;
      if (video.currentTime !== seconds) await seek(video, seconds);
      yield { pixels: await decodePicture(video), seconds };
    }
  } finally {
    if (before) {
      video.currentTime = before.at;
      if (!before.paused) void video.play();
    }
    if (address) {
      video.removeAttribute('src');
      URL.revokeObjectURL(address);
    }
  }
}

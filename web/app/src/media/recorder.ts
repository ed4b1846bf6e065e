// The microphone, as plain samples: no codec stands between the voice and the model.

import { writeWav } from 'bezel';
import worklet from './recorder_worklet.js?url';

/** What a model hears at most. */
export const longestSeconds = 30;

/** Times a second. */
const meterRate = 15;

export interface Taken {
  file: Blob;
  seconds: number;
}

export class Recorder {
  private readonly pieces: Float32Array[] = [];
  private length = 0;
  /** What the meter has not been told yet. */
  private power = 0;
  private untold = 0;

  private constructor(
    private readonly context: AudioContext,
    private readonly stream: MediaStream,
    private readonly onLevel: (level: number, seconds: number) => void,
  ) {}

  /** Asks for permission the first time. `onLevel` is told from 0 to 1 how loud it is. */
  static async start(onLevel: (level: number, seconds: number) => void): Promise<Recorder> {
    const audio = { channelCount: 1, echoCancellation: false, noiseSuppression: false, autoGainControl: true };
    const stream = await navigator.mediaDevices.getUserMedia({ audio });
    const context = new AudioContext();
    const recorder = new Recorder(context, stream, onLevel);
    try {
      await context.audioWorklet.addModule(worklet);
      const tap = new AudioWorkletNode(context, 'tap', { numberOfOutputs: 0 });
      tap.port.onmessage = ({ data }: MessageEvent<Float32Array>) => recorder.take(data);
      context.createMediaStreamSource(stream).connect(tap);
      await context.resume();
    } catch (error) {
      recorder.cancel();
      throw error;
    }
    return recorder;
  }

  private take(samples: Float32Array): void {
    const seconds = this.length / this.context.sampleRate;
    if (seconds >= longestSeconds) return;
    this.pieces.push(samples);
    this.length += samples.length;
    this.untold += samples.length;
    for (const x of samples) this.power += x * x;
    if (this.untold < this.context.sampleRate / meterRate) return;
    // The ear's scale: -60 dB and below are nothing.
    this.onLevel(Math.min(1, Math.max(0, 1 + Math.log10(this.power / this.untold + 1e-12) / 6)), seconds);
    this.power = this.untold = 0;
  }

  cancel(): void {
    for (const track of this.stream.getTracks()) track.stop();
    void this.context.close();
  }

  finish(): Taken {
    const rate = this.context.sampleRate;
    this.cancel();
    const samples = new Float32Array(this.length);
    let at = 0;
    for (const piece of this.pieces) {
      samples.set(piece, at);
      at += piece.length;
    }
    return { file: writeWav({ samples, rate, channels: 1 }), seconds: this.length / rate };
  }
}

export const canRecord = (): boolean => navigator.mediaDevices?.getUserMedia !== undefined && typeof AudioWorkletNode !== 'undefined';

// Speaking instead of writing: hold the button and let go, or press once to begin and once more to end.

import { useEffect, useRef, useState, type CSSProperties } from 'react';
import { canRecord, longestSeconds, Recorder } from '../media/recorder';
import { add, attach } from '../state/attachments';
import { clock, messageOf } from '../state/format';
import { useHasDevice } from '../ui/devices';
import { Icon } from '../ui/icons';
import { toast } from '../ui/toast';

/** A press that is shorter only begins. */
const holdMs = 350;

export function Microphone() {
  const [meter, setMeter] = useState<{ level: number; seconds: number } | null>(null);
  const recorder = useRef<Recorder | null>(null);
  const starting = useRef(false);
  const pressedAt = useRef(0);
  /** Pressed again, or let go, before the microphone was there. */
  const wanted = useRef<'go on' | 'finish' | 'cancel'>('go on');

  const end = (keep: boolean): void => {
    if (starting.current) {
      wanted.current = keep ? 'finish' : 'cancel';
      return;
    }
    const running = recorder.current;
    recorder.current = null;
    setMeter(null);
    if (!running) return;
    if (!keep) return running.cancel();
    const { file, seconds } = running.finish();
    if (seconds < 0.1) toast('Nothing was recorded. Hold the button while you speak.');
    else add(attach('audio', 'recording.wav', file, seconds));
  };
  const finish = useRef(end);
  finish.current = end;
  const begin = async (): Promise<void> => {
    starting.current = true;
    wanted.current = 'go on';
    setMeter({ level: 0, seconds: 0 });
    try {
      recorder.current = await Recorder.start((level, seconds) => {
        if (seconds >= longestSeconds - 0.1) finish.current(true);
        else setMeter((old) => old && { level: Math.max(level, old.level * 0.8), seconds });
      });
      starting.current = false;
      if (wanted.current !== 'go on') end(wanted.current === 'finish');
    } catch (error) {
      starting.current = false;
      setMeter(null);
      const denied = error instanceof DOMException && error.name === 'NotAllowedError';
      toast(denied ? 'This page may not use the microphone. Allow it in the browser’s settings.' : `The microphone cannot be used: ${messageOf(error)}`);
    }
  };
  const press = (): void => {
    if (recorder.current || starting.current) return end(true);
    pressedAt.current = performance.now();
    void begin();
  };
  const letGo = (): void => {
    if ((recorder.current || starting.current) && pressedAt.current > 0 && performance.now() - pressedAt.current >= holdMs) end(true);
    pressedAt.current = 0;
  };

  const has = useHasDevice('audioinput');
  const recording = meter !== null;
  useEffect(() => {
    if (!recording) return;
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== 'Escape') return;
      event.preventDefault();
      finish.current(false);
    };
    addEventListener('keydown', onKey, true);
    return () => removeEventListener('keydown', onKey, true);
  }, [recording]);
  useEffect(() => () => finish.current(false), []);

  if (!canRecord() || !has) return null;
  return (
    <>
      <button
        type="button"
        className={recording ? 'round mic recording' : 'round mic'}
        aria-label={recording ? 'End the recording' : 'Record: hold while you speak'}
        aria-pressed={recording}
        title={recording ? 'Let go, or press again, to end' : 'Hold to talk'}
        style={{ '--level': meter?.level ?? 0 } as CSSProperties}
        onPointerDown={(event) => {
          if (event.button !== 0) return;
          event.currentTarget.setPointerCapture(event.pointerId);
          press();
        }}
        onPointerUp={letGo}
        onPointerCancel={() => end(false)}
        onContextMenu={(event) => event.preventDefault()}
        onKeyDown={(event) => {
          if (event.key !== ' ' && event.key !== 'Enter') return;
          event.preventDefault();
          if (!event.repeat) press();
        }}
        onKeyUp={(event) => {
          if (event.key === ' ' || event.key === 'Enter') letGo();
        }}
        // Screen readers click without pressing.
        onClick={(event) => event.detail === 0 && press()}
      >
        <Icon name="microphone" />
      </button>
      {meter && (
        <span className="meter">
          <meter min={0} max={1} value={meter.level} aria-label="Loudness" />
          <output aria-label="Length of the recording">{clock(meter.seconds)}</output>
          <button type="button" className="small quiet" onClick={() => end(false)}>
            Cancel
          </button>
        </span>
      )}
    </>
  );
}

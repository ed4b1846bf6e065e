// What a person should know now, and what to do about it.

import { useState, type ReactNode } from 'react';
import { useApp, view } from '../app_context';
import { bytes } from '../state/format';
import { embedded, nameOf } from '../state/runtime';
import { useStore } from '../state/store';
import { Icon } from '../ui/icons';

function Notice({ kind, children, onClose }: { kind: 'info' | 'error'; children: ReactNode; onClose?: () => void }) {
  return (
    <div className={`notice ${kind}`} role={kind === 'error' ? 'alert' : 'status'}>
      <Icon name="warning" />
      <div>{children}</div>
      {onClose && (
        <button type="button" className="quiet" aria-label="Dismiss" onClick={onClose}>
          <Icon name="close" />
        </button>
      )}
    </div>
  );
}

function Loading() {
  const { runtime } = useApp();
  const { phase, choice, progress } = useStore(runtime.store, (state) => state);
  if (phase !== 'loading' && phase !== 'starting') return null;
  const name = nameOf(choice);
  return (
    <div className="loading">
      <progress aria-label={`Loading ${name}`} max={progress?.total || 1} value={progress?.done} />
      <span className="muted">
        {phase === 'starting' ? 'Starting the engine…' : `Loading ${name}…`}
        {progress && progress.total > 0 && ` ${bytes(progress.done)} of ${bytes(progress.total)}`}
      </span>
      <button type="button" className="small" onClick={() => runtime.stopLoading()}>
        Stop
      </button>
    </div>
  );
}

function Failed() {
  const { runtime } = useApp();
  const { phase, error, choice } = useStore(runtime.store, (state) => state);
  if (phase !== 'failed') return null;
  return (
    <Notice kind="error">
      <p>
        <strong>{nameOf(choice)} is not loaded.</strong> {error}
      </p>
      <p className="actions">
        <button type="button" className="small" onClick={() => void runtime.retry()}>
          Try again
        </button>
        {choice.kind !== 'embedded' && (
          <button type="button" className="small" onClick={() => void runtime.load(embedded)}>
            Use the embedded model
          </button>
        )}
        <button type="button" className="small" onClick={() => view.set({ dialog: 'models' })}>
          Choose a model
        </button>
      </p>
    </Notice>
  );
}

function Slow() {
  const { runtime } = useApp();
  const reason = useStore(runtime.store, (state) => state.cpuReason);
  const software = useStore(runtime.store, (state) => state.device?.software ?? false);
  const [closed, setClosed] = useState(false);
  if (closed || (reason === undefined && !software)) return null;
  return (
    <Notice kind="info" onClose={() => setClosed(true)}>
      <details>
        <summary>
          {reason !== undefined ? 'Slow here: the processor computes, not the graphics card.' : 'Slow here: the browser imitates a graphics card.'}
        </summary>
        {reason !== undefined && <p>{reason}</p>}
        <p>
          To make it fast, use a recent Chrome, Edge, Firefox or Safari with WebGPU, and switch on “hardware acceleration” in the browser’s
          settings. The embedded model is small enough to work meanwhile.
        </p>
      </details>
    </Notice>
  );
}

export function Notices() {
  const { chats } = useApp();
  const notKept = useStore(chats.store, (state) => state.notKept);
  return (
    <div className="notices">
      <Loading />
      <Failed />
      <Slow />
      {notKept && <Notice kind="error">{notKept}</Notice>}
    </div>
  );
}

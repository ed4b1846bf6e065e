// Rows of the model manager: a model, and a download.

import { useApp } from '../app_context';
import { bytes, duration } from '../state/format';
import type { Job } from '../state/models';
import { nameOf, type Choice } from '../state/runtime';
import { useStore } from '../state/store';
import { Icon } from '../ui/icons';

const same = (a: Choice, b: Choice): boolean =>
  a.kind === b.kind && (a.kind === 'stored' && b.kind === 'stored' ? a.key === b.key : nameOf(a) === nameOf(b));

export function ModelRow({ choice, detail, onDelete }: { choice: Choice; detail: string; onDelete?: () => void }) {
  const { models, runtime } = useApp();
  const current = useStore(runtime.store, (state) => same(state.choice, choice));
  const phase = useStore(runtime.store, (state) => state.phase);
  const name = nameOf(choice);
  const inUse = current && phase !== 'failed';
  return (
    <li className={current ? 'current' : undefined}>
      <span className="model-text">
        <strong>{name}</strong>
        <span className="muted">{detail}</span>
      </span>
      {choice.kind === 'served' && (
        <button type="button" className="small" aria-label={`Will it fit? ${name}`} onClick={() => void models.check(choice)}>
          Will it fit?
        </button>
      )}
      {inUse ? (
        <span className="in-use">{phase === 'ready' ? 'In use' : 'Loading…'}</span>
      ) : (
        <button type="button" className="small primary" aria-label={`Use ${name}`} onClick={() => models.use(choice)}>
          Use
        </button>
      )}
      {onDelete && (
        <button type="button" className="quiet" aria-label={`Delete ${name}`} title={inUse ? 'Choose another model first' : 'Delete'} disabled={inUse} onClick={onDelete}>
          <Icon name="trash" />
        </button>
      )}
    </li>
  );
}

function describe({ state, progress, error }: Job): string {
  if (state === 'failed') return error ?? 'It failed.';
  if (!progress) return 'Starting…';
  const { done, total, bytesPerSecond, secondsLeft, note } = progress;
  const amount = `${bytes(done)} of ${bytes(total)}`;
  if (state === 'paused') return `Paused at ${amount}`;
  switch (progress.state) {
    case 'waiting':
      return 'Another tab is at it…';
    case 'starting':
      return 'Starting…';
    case 'retrying':
      return `Trying again: ${note ?? 'the connection failed'}`;
    case 'offline':
      return `No network. It goes on at ${amount} when there is one.`;
    case 'restarted':
      return 'The file has changed: from the beginning…';
    case 'verifying':
      return `Checking, ${amount}`;
    case 'ready':
      return 'Done';
    case 'downloading':
      return [amount, bytesPerSecond > 0 && `${bytes(bytesPerSecond)}/s`, secondsLeft !== undefined && `${duration(secondsLeft)} left`].filter(Boolean).join(', ');
  }
}

interface JobProps {
  job: Job;
  onPause?: () => void;
  onResume?: () => void;
  onDelete: () => void;
}

export function JobRow({ job, onPause, onResume, onDelete }: JobProps) {
  const { name, progress, state } = job;
  return (
    <li className="job">
      <span className="model-text">
        <strong>{name}</strong>
        <span className={state === 'failed' ? 'failed' : 'muted'}>{describe(job)}</span>
        <progress aria-label={`Download of ${name}`} max={progress?.total || 1} value={progress?.done ?? 0} />
      </span>
      {state === 'running' && onPause && (
        <button type="button" className="quiet" aria-label={`Pause ${name}`} title="Pause" onClick={onPause}>
          <Icon name="pause" />
        </button>
      )}
      {state !== 'running' && onResume && (
        <button type="button" className="quiet" aria-label={`Resume ${name}`} title="Resume" onClick={onResume}>
          <Icon name="play" />
        </button>
      )}
      <button type="button" className="quiet" aria-label={`Delete ${name}`} title="Delete" onClick={onDelete}>
        <Icon name="trash" />
      </button>
    </li>
  );
}

// The line at the top: which conversation, which model, how fast.

import { useEffect } from 'react';
import { goTo, useApp, view } from '../app_context';
import { rate } from '../state/format';
import { nameOf } from '../state/runtime';
import { useStore } from '../state/store';
import { Icon } from '../ui/icons';

function ModelButton() {
  const { runtime } = useApp();
  const { phase, choice, progress } = useStore(runtime.store, (state) => state);
  const percent = progress && progress.total > 0 ? Math.floor((100 * progress.done) / progress.total) : null;
  const status = { starting: 'starting', loading: percent === null ? 'loading' : `${percent} %`, ready: '', failed: 'not loaded' }[phase];
  const name = nameOf(choice);
  return (
    <button type="button" className="model-button" onClick={() => view.set({ dialog: 'models' })} aria-label={`Model: ${name}${status && `, ${status}`}. Choose another`}>
      <span className={`dot ${phase}`} />
      <span className="model-name">{name}</span>
      {status && <span className="muted">{status}</span>}
      <Icon name="down" />
    </button>
  );
}

function Speed() {
  const { perf } = useApp();
  const shown = useStore(view, (state) => state.perf);
  const speed = useStore(perf.store, (state) => (state.answering ? state.rate : (state.answers.at(-1)?.decodeRate ?? 0)));
  return (
    <button type="button" className="quiet speed" aria-pressed={shown} aria-label={speed > 0 ? `Performance, ${rate(speed)} tok/s` : 'Performance'} title="Performance" onClick={() => view.set({ perf: !shown })}>
      <Icon name="chart" />
      {speed > 0 && <span>{rate(speed)} tok/s</span>}
    </button>
  );
}

export function Header() {
  const { chats } = useApp();
  const drawer = useStore(view, (state) => state.drawer);
  const title = useStore(chats.store, (state) => state.conversations.find(({ id }) => id === state.current)?.title ?? 'New chat');
  useEffect(() => {
    document.title = title === 'New chat' ? 'bezel' : `${title} – bezel`;
  }, [title]);
  return (
    <header className="top">
      <button type="button" className="quiet only-phone" aria-label="Conversations" aria-expanded={drawer} aria-controls="conversations" onClick={() => view.set({ drawer: true })}>
        <Icon name="menu" />
      </button>
      <h1 title={title}>{title}</h1>
      <ModelButton />
      <Speed />
      <button type="button" className="quiet only-phone" aria-label="New chat" onClick={() => goTo(null)}>
        <Icon name="plus" />
      </button>
    </header>
  );
}

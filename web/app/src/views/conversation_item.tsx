// A conversation in the list, with what can be done to it.

import { useState } from 'react';
import { goTo, useApp } from '../app_context';
import { exportAs } from '../state/export';
import { useStore } from '../state/store';
import type { Conversation } from '../state/tree';
import { Icon, type IconName } from '../ui/icons';
import { toast } from '../ui/toast';

function Rename({ conversation, onDone }: { conversation: Conversation; onDone: () => void }) {
  const { chats } = useApp();
  const [title, setTitle] = useState(conversation.title);
  const done = (keep: boolean): void => {
    if (keep) void chats.rename(conversation.id, title);
    onDone();
  };
  return (
    <input
      autoFocus
      className="rename"
      aria-label="Title"
      value={title}
      onChange={(event) => setTitle(event.target.value)}
      onBlur={() => done(true)}
      onKeyDown={(event) => {
        if (event.key === 'Enter') done(true);
        if (event.key !== 'Escape') return;
        event.preventDefault();
        done(false);
      }}
    />
  );
}

export function ConversationItem({ conversation }: { conversation: Conversation }) {
  const { chats } = useApp();
  const { id, title } = conversation;
  const current = useStore(chats.store, (state) => state.current === id);
  const answering = useStore(chats.store, (state) => state.answering === id);
  const [open, setOpen] = useState(false);
  const [renaming, setRenaming] = useState(false);

  const remove = async (): Promise<void> => {
    const removed = await chats.remove(id);
    toast(`Deleted “${title}”.`, removed && { label: 'Undo', run: () => void chats.restore(removed) });
  };
  const save = async (kind: 'json' | 'md'): Promise<void> => {
    const bundle = await chats.bundle(id);
    if (bundle) exportAs(kind, bundle);
  };
  const action = (label: string, icon: IconName, run: () => void, text?: string) => (
    <button
      type="button"
      className="quiet"
      aria-label={`${label}: ${title}`}
      title={label}
      onClick={() => {
        setOpen(false);
        run();
      }}
    >
      <Icon name={icon} />
      {text}
    </button>
  );
  return (
    <li className={current ? 'current' : undefined}>
      {renaming ? (
        <Rename conversation={conversation} onDone={() => setRenaming(false)} />
      ) : (
        <div className="item">
          <button type="button" className="title" aria-current={current ? 'page' : undefined} onClick={() => goTo(id)}>
            {title}
            {answering && <span className="dot loading" title="Answering" />}
          </button>
          <button type="button" className="quiet more" aria-label={`Actions for ${title}`} aria-expanded={open} onClick={() => setOpen(!open)}>
            <Icon name="more" />
          </button>
        </div>
      )}
      {open && (
        <div className="item-actions">
          {action('Rename', 'edit', () => setRenaming(true))}
          {action('Export as MD', 'export', () => void save('md'), 'MD')}
          {action('Export as JSON', 'export', () => void save('json'), 'JSON')}
          {action('Delete', 'trash', () => void remove())}
        </div>
      )}
    </li>
  );
}

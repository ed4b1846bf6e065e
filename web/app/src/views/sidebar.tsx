// Conversations: search, open, rename, export, delete. On a phone it is a drawer.

import { useEffect, useMemo, useRef, useState } from 'react';
import { goTo, useApp, view } from '../app_context';
import { period } from '../state/format';
import { useStore } from '../state/store';
import type { Conversation } from '../state/tree';
import { Icon } from '../ui/icons';
import { InstallButton } from '../ui/install';
import { ConversationItem } from './conversation_item';

/** Those whose title or messages contain the text; null while there is nothing to look for. */
function useSearch(text: string): Set<string> | null {
  const { chats } = useApp();
  const [found, setFound] = useState<Set<string> | null>(null);
  useEffect(() => {
    setFound(null);
    if (text.trim() === '') return;
    let current = true;
    const timer = setTimeout(() => void chats.search(text.trim()).then((ids) => current && setFound(ids)), 150);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [chats, text]);
  return found;
}

function grouped(conversations: Conversation[]): [string, Conversation[]][] {
  const groups = new Map<string, Conversation[]>();
  for (const conversation of conversations) {
    const name = period(conversation.updated);
    groups.set(name, [...(groups.get(name) ?? []), conversation]);
  }
  return [...groups];
}

export function Sidebar({ hidden }: { hidden: boolean }) {
  const { chats } = useApp();
  const conversations = useStore(chats.store, (state) => state.conversations);
  const [search, setSearch] = useState('');
  const found = useSearch(search);
  const wanted = search.trim().toLowerCase();
  const groups = useMemo(
    () => grouped(conversations.filter(({ id, title }) => wanted === '' || title.toLowerCase().includes(wanted) || found?.has(id))),
    [conversations, wanted, found],
  );
  const top = useRef<HTMLButtonElement>(null);
  const drawer = useStore(view, (state) => state.drawer);
  useEffect(() => {
    if (drawer) top.current?.focus();
  }, [drawer]);
  return (
    <aside id="conversations" className={hidden ? 'sidebar' : 'sidebar open'} aria-label="Conversations" inert={hidden}>
      <div className="sidebar-top">
        <span className="brand">
          <img src="./icon.svg" alt="" width="26" height="26" /> bezel
        </span>
        <button type="button" className="quiet only-phone" aria-label="Close the list" onClick={() => view.set({ drawer: false })}>
          <Icon name="close" />
        </button>
      </div>
      <button type="button" className="new-chat" ref={top} onClick={() => goTo(null)} title="New chat (Ctrl+Shift+O)">
        <Icon name="plus" /> New chat
      </button>
      <label className="search">
        <Icon name="search" />
        <input type="search" placeholder="Search" aria-label="Search conversations" value={search} onChange={(event) => setSearch(event.target.value)} />
      </label>
      <nav aria-label="Conversations">
        {groups.map(([name, list]) => (
          <section key={name} aria-label={name}>
            <h2>{name}</h2>
            <ul>
              {list.map((conversation) => (
                <ConversationItem key={conversation.id} conversation={conversation} />
              ))}
            </ul>
          </section>
        ))}
        {groups.length === 0 && <p className="muted empty">{wanted === '' ? 'Your conversations will be here.' : 'Nothing found.'}</p>}
      </nav>
      <div className="sidebar-bottom">
        <InstallButton />
        <button type="button" className="row" onClick={() => view.set({ dialog: 'models', drawer: false })}>
          <Icon name="chip" /> Models
        </button>
        <button type="button" className="row" onClick={() => view.set({ perf: true, drawer: false })}>
          <Icon name="chart" /> Performance
        </button>
        <button type="button" className="row" onClick={() => view.set({ dialog: 'settings', drawer: false })}>
          <Icon name="settings" /> Settings
        </button>
      </div>
    </aside>
  );
}

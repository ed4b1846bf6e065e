// The whole window: the list of conversations, the conversation, the panels, and the keys that work everywhere.

import { useEffect } from 'react';
import { goTo, idInAddress, useApp, view } from '../app_context';
import { useStore } from '../state/store';
import { Toasts } from '../ui/toast';
import { Announcer } from './announcer';
import { Composer } from './composer';
import { Conversation } from './conversation';
import { Header } from './header';
import { ModelsDialog } from './models';
import { Notices } from './notices';
import { PerfPanel } from './perf';
import { SettingsDialog } from './settings';
import { Sidebar } from './sidebar';
import { usePhone } from '../ui/phone';

function useKeys(): void {
  const { chats } = useApp();
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key === 'Escape' && !event.defaultPrevented && !document.querySelector('dialog[open]')) {
        if (view.get().drawer) view.set({ drawer: false });
        else void chats.stop();
      }
      if (event.key.toLowerCase() === 'o' && event.shiftKey && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        goTo(null);
        document.querySelector<HTMLElement>('#message')?.focus();
      }
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [chats]);
}

/** The address names the open conversation. */
function useAddress(): void {
  const { chats } = useApp();
  const current = useStore(chats.store, (state) => state.current);
  const ready = useStore(chats.store, (state) => state.ready);
  useEffect(() => {
    const onHash = (): void => void chats.open(idInAddress());
    addEventListener('hashchange', onHash);
    return () => removeEventListener('hashchange', onHash);
  }, [chats]);
  useEffect(() => {
    if (ready && current !== idInAddress()) history.replaceState(null, '', current ? `#c=${current}` : location.pathname + location.search);
  }, [current, ready]);
}

export function Root() {
  const { drawer, dialog, perf } = useStore(view, (state) => state);
  const { chats } = useApp();
  const ready = useStore(chats.store, (state) => state.ready);
  const phone = usePhone();
  useKeys();
  useAddress();
  const close = (): void => view.set({ dialog: null });
  return (
    <>
      <div className="app">
        <Sidebar hidden={phone && !drawer} />
        {phone && drawer && <div className="backdrop" onClick={() => view.set({ drawer: false })} />}
        <main inert={phone && drawer}>
          <Header />
          <Notices />
          {ready && <Conversation />}
          <Composer />
        </main>
        {perf && <PerfPanel />}
      </div>
      {dialog === 'settings' && <SettingsDialog onClose={close} />}
      {dialog === 'models' && <ModelsDialog onClose={close} />}
      <Announcer />
      <Toasts />
    </>
  );
}

// The parts of the app, for its components.

import { createContext, useContext } from 'react';
import type { Chats } from './state/chats';
import type { Models } from './state/models';
import type { Perf } from './state/perf';
import type { Runtime } from './state/runtime';
import { Store } from './state/store';

export interface View {
  /** The list of conversations on a phone, where it lies over the conversation. */
  drawer: boolean;
  dialog: 'settings' | 'models' | null;
  perf: boolean;
  /** The message that is being edited. */
  editing: string | null;
}

export interface App {
  runtime: Runtime;
  chats: Chats;
  models: Models;
  perf: Perf;
}

export const view = new Store<View>({ drawer: false, dialog: null, perf: false, editing: null });

export const AppContext = createContext<App | null>(null);
export function useApp(): App {
  const app = useContext(AppContext);
  if (!app) throw new Error('There is no app around this component.');
  return app;
}

/** Opens a conversation through the address, so that the browser's back button works. */
export function goTo(id: string | null): void {
  location.hash = id === null ? '' : `c=${id}`;
  view.set({ drawer: false, editing: null });
}
export function idInAddress(): string | null {
  return /^#c=([\w-]+)$/.exec(location.hash)?.[1] ?? null;
}

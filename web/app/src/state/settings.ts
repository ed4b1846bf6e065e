// Settings, kept in localStorage: small, and there before the first paint.

import { Store } from './store';

export type Theme = 'system' | 'light' | 'dark';

export interface Settings {
  theme: Theme;
  system: string;
  thinking: boolean;
  temperature: number;
  topP: number;
  topK: number;
  maxTokens: number;
  /** The most tokens of a picture; 0: what the model likes. */
  imageTokens: number;
}

/** What Gemma's authors recommend. */
export const defaults: Settings = {
  theme: 'system',
  system: '',
  thinking: false,
  temperature: 1,
  topP: 0.95,
  topK: 64,
  maxTokens: 2048,
  imageTokens: 0,
};

export const imageBudgets = [0, 70, 140, 280, 560, 1120];

export const limits = {
  temperature: { min: 0, max: 2, step: 0.05 },
  topP: { min: 0.05, max: 1, step: 0.05 },
  topK: { min: 1, max: 200, step: 1 },
  maxTokens: { min: 64, max: 16384, step: 64 },
} as const;

const key = 'bezel.settings';

/** Reads JSON that this page wrote; anything else, or storage that is switched off, counts as nothing. */
export function recall(name: string): unknown {
  try {
    return JSON.parse(localStorage.getItem(name) ?? 'null');
  } catch {
    return null;
  }
}
export function remember(name: string, value: unknown): void {
  try {
    localStorage.setItem(name, JSON.stringify(value));
  } catch {
    // storage is full or switched off: the value lasts as long as the page
  }
}

export function readSettings(stored: unknown): Settings {
  const given = (typeof stored === 'object' && stored !== null ? stored : {}) as Partial<Settings>;
  const number = (name: keyof typeof limits): number => {
    const value = given[name];
    const { min, max } = limits[name];
    return typeof value === 'number' && value >= min && value <= max ? value : defaults[name];
  };
  return {
    theme: given.theme === 'light' || given.theme === 'dark' ? given.theme : 'system',
    system: typeof given.system === 'string' ? given.system : '',
    thinking: given.thinking === true,
    temperature: number('temperature'),
    topP: number('topP'),
    topK: number('topK'),
    maxTokens: number('maxTokens'),
    imageTokens: imageBudgets.includes(given.imageTokens!) ? given.imageTokens! : 0,
  };
}

export const settings = new Store<Settings>(readSettings(recall(key)));
settings.subscribe(() => remember(key, settings.get()));

function showTheme(): void {
  const { theme } = settings.get();
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  // The window's own frame: index.html has a colour for each scheme.
  for (const meta of document.querySelectorAll<HTMLMetaElement>('meta[name="theme-color"]')) {
    const scheme = (meta.dataset.scheme ??= meta.media.includes('dark') ? 'dark' : 'light');
    meta.media = theme === 'system' ? `(prefers-color-scheme: ${scheme})` : theme === scheme ? 'all' : 'not all';
  }
}
settings.subscribe(showTheme);
showTheme();

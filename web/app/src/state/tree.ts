// A conversation is a tree: editing or retrying a turn adds a sibling, and nothing is overwritten.

import type { Attachment } from './attachments';

export interface AnswerStats {
  model: string;
  promptTokens: number;
  cachedTokens: number;
  tokens: number;
  firstTokenMs: number;
  prefillRate: number;
  decodeRate: number;
}

export interface Message {
  id: string;
  conversation: string;
  parent: string | null;
  role: 'user' | 'assistant';
  text: string;
  thinking: string;
  /** How long the model thought; missing while it does. */
  thinkingMs?: number;
  created: number;
  /** `waiting` and `streaming` on disk mean that the page went away within the answer. */
  state: 'done' | 'waiting' | 'streaming' | 'stopped' | 'length' | 'failed';
  /** What came with it, before its text. */
  attachments?: Attachment[];
  /** What is done before the first word; only while it lasts. */
  activity?: string;
  error?: string;
  stats?: AnswerStats;
}

export interface Conversation {
  id: string;
  title: string;
  created: number;
  updated: number;
  /** The message at the end of the branch that is shown. */
  head: string | null;
}

export type Messages = Readonly<Record<string, Message>>;

export function childrenOf(messages: Messages, parent: string | null): Message[] {
  return Object.values(messages)
    .filter((message) => message.parent === parent)
    .sort((a, b) => a.created - b.created || (a.id < b.id ? -1 : 1));
}

/** From the first message to `head`. */
export function pathTo(messages: Messages, head: string | null): Message[] {
  const path: Message[] = [];
  const seen = new Set<string>();
  for (let id = head; id !== null && !seen.has(id); ) {
    const message: Message | undefined = messages[id];
    if (message === undefined) break;
    seen.add(id);
    path.push(message);
    id = message.parent;
  }
  return path.reverse();
}

/** The end of the branch through `id` that was written last. */
export function latestLeaf(messages: Messages, id: string): string {
  for (let at = id; ; ) {
    const next = childrenOf(messages, at).at(-1);
    if (next === undefined) return at;
    at = next.id;
  }
}

export interface Turn {
  message: Message;
  /** The versions of this turn, itself among them. */
  versions: string[];
}

export function turnsOf(messages: Messages, head: string | null): Turn[] {
  return pathTo(messages, head).map((message) => ({
    message,
    versions: childrenOf(messages, message.parent).map(({ id }) => id),
  }));
}

/** Answers that the page left unfinished when it went away are answers that were stopped. */
export function settled(message: Message): Message {
  if (message.state !== 'waiting' && message.state !== 'streaming') return message;
  const { activity: _, ...rest } = message;
  return { ...rest, state: 'stopped' };
}

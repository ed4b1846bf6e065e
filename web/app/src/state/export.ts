// A conversation as a file: JSON with every branch, or Markdown of the branch that is shown.

import type { Bundle } from './db';
import { pathTo, type Messages } from './tree';

export function asJson({ conversation, messages }: Bundle): string {
  return JSON.stringify({ format: 'bezel-conversation', version: 1, conversation, messages }, null, 2);
}

export function asMarkdown({ conversation, messages }: Bundle): string {
  const byId: Messages = Object.fromEntries(messages.map((message) => [message.id, message]));
  const turns = pathTo(byId, conversation.head).map(({ role, text }) => `## ${role === 'user' ? 'You' : 'Answer'}\n\n${text.trim()}\n`);
  return `# ${conversation.title}\n\n${turns.join('\n')}`;
}

export function download(name: string, type: string, text: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function exportAs(kind: 'json' | 'md', bundle: Bundle): void {
  const base = bundle.conversation.title.replace(/[^\p{L}\p{N} _-]/gu, '').trim().slice(0, 60) || 'conversation';
  if (kind === 'json') download(`${base}.json`, 'application/json', asJson(bundle));
  else download(`${base}.md`, 'text/markdown', asMarkdown(bundle));
}

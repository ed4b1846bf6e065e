// A conversation as a file: JSON with every branch, or Markdown of the branch that is shown.

import { called } from './attachments';
import type { Bundle } from './db';
import { pathTo, type Messages } from './tree';

export function asJson({ conversation, messages }: Bundle): string {
  // Files are named, not contained.
  const named = messages.map(({ attachments, ...message }) => ({
    ...message,
    ...(attachments && { attachments: attachments.map(({ kind, name, file }) => ({ kind, name, type: file.type, bytes: file.size })) }),
  }));
  return JSON.stringify({ format: 'bezel-conversation', version: 1, conversation, messages: named }, null, 2);
}

export function asMarkdown({ conversation, messages }: Bundle): string {
  const byId: Messages = Object.fromEntries(messages.map((message) => [message.id, message]));
  const turns = pathTo(byId, conversation.head).map(({ role, text, attachments = [] }) => {
    const media = attachments.map(({ kind, name }) => `*(${called[kind]}: ${name})*\n\n`).join('');
    return `## ${role === 'user' ? 'You' : 'Answer'}\n\n${media}${text.trim()}\n`;
  });
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

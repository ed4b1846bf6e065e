// What comes with a message: pictures, recordings, videos. Kept with it in the database, as files.

import type { ContentPart } from 'bezel';
import { longestSeconds } from '../media/recorder';
import { toast } from '../ui/toast';
import type { ModelLike } from '../engine/like';
import { settings } from './settings';
import { Store } from './store';
import type { Message } from './tree';

export type AttachmentKind = 'image' | 'audio' | 'video';

export interface Attachment {
  id: string;
  kind: AttachmentKind;
  name: string;
  file: Blob;
  /** Of recordings made here. */
  seconds?: number;
}

export const called: Record<AttachmentKind, string> = { image: 'picture', audio: 'recording', video: 'video' };
export const accepted = 'image/*,audio/*,video/*';
/** Browsers keep them in memory while they decode. */
const mostBytes = 200e6;
const mostAtOnce = 16;

let last = 0;
export function attach(kind: AttachmentKind, name: string, file: Blob, seconds?: number): Attachment {
  return { id: `${Date.now().toString(36)}-${(last++).toString(36)}`, kind, name, file, ...(seconds !== undefined && { seconds }) };
}

/** Those of the message that is being written. */
export const pending = new Store<{ items: Attachment[] }>({ items: [] });

export function add(...more: Attachment[]): void {
  const items = [...pending.get().items, ...more];
  if (items.length > mostAtOnce) toast(`A message takes ${mostAtOnce} attachments.`);
  pending.set({ items: items.slice(0, mostAtOnce) });
}
export function remove(id: string): void {
  pending.set({ items: pending.get().items.filter((item) => item.id !== id) });
}
export function takePending(): Attachment[] {
  const { items } = pending.get();
  pending.set({ items: [] });
  return items;
}

/** A model hears so many seconds; what comes after them is not sent. */
function warnIfLong(file: File): void {
  const player = new Audio();
  const done = (): void => URL.revokeObjectURL(player.src);
  player.preload = 'metadata';
  player.onerror = done;
  player.onloadedmetadata = () => {
    if (player.duration > longestSeconds + 0.5) toast(`Of ${file.name} only the first ${longestSeconds} seconds are heard.`);
    done();
  };
  player.src = URL.createObjectURL(file);
}

/** Takes those files that a model could see or hear; gives whether there were any. */
export function addFiles(files: Iterable<File>): boolean {
  const good: Attachment[] = [];
  for (const file of files) {
    const kind = file.type.split('/')[0];
    if (kind !== 'image' && kind !== 'audio' && kind !== 'video') toast(`${file.name} is no picture, recording or video.`);
    else if (file.type === 'image/svg+xml') toast(`${file.name} is a drawing without pixels, which browsers do not hand on.`);
    else if (file.size > mostBytes) toast(`${file.name} is larger than ${mostBytes / 1e6} MB.`);
    else {
      if (kind === 'audio') warnIfLong(file);
      good.push(attach(kind, file.name, file));
    }
  }
  add(...good);
  return good.length > 0;
}

type Senses = Pick<ModelLike['info'], 'sees' | 'hears'>;
export const canTake = (kind: AttachmentKind, model: Senses): boolean => (kind === 'audio' ? model.hears : model.sees);

/** Media come before the text that speaks of them. What this model cannot take is mentioned instead. */
export function contentOf({ text, attachments = [] }: Message, model: Senses): string | ContentPart[] {
  if (attachments.length === 0) return text;
  const { imageTokens } = settings.get();
  const budget = imageTokens > 0 ? { token_budget: imageTokens } : {};
  const parts = attachments.map(({ kind, file }): ContentPart => {
    if (!canTake(kind, model)) return { type: 'text', text: `(A ${called[kind]} was here, which you cannot ${kind === 'audio' ? 'hear' : 'see'}.)\n` };
    if (kind === 'audio') return { type: 'audio', audio: file };
    return kind === 'video' ? { type: 'video', video: file } : { type: 'image', image: file, ...budget };
  });
  return text === '' ? parts : [...parts, { type: 'text', text }];
}

/** What a conversation is called that begins without words. */
export const titleOf = (attachments: Attachment[]): string => {
  const first = attachments[0];
  if (!first) return '';
  const kind = called[first.kind];
  return `${kind[0]!.toUpperCase()}${kind.slice(1)}${first.name ? `: ${first.name}` : ''}`;
};

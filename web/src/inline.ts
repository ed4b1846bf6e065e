// Files within a request's text: how pictures and recordings reach a server.

import type { ChatMessage, ContentPart } from './openai.js';
import { BezelError } from './protocol.js';

export function base64(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}

async function inlinePart(part: ContentPart): Promise<ContentPart> {
  if (part.type !== 'image' && part.type !== 'audio' && part.type !== 'video') return part;
  const file = part.type === 'image' ? part.image : part.type === 'audio' ? part.audio : part.video;
  if (part.type === 'video' || !(file instanceof Blob)) {
    throw new BezelError('unsupported', `A part of the type ${part.type} goes to a server as the file of a picture or a recording only.`);
  }
  const data = base64(new Uint8Array(await file.arrayBuffer()));
  if (part.type === 'audio') return { type: 'input_audio', input_audio: { data, format: file.type === 'audio/mpeg' ? 'mp3' : file.type.split('/')[1] || 'wav' } };
  return { type: 'image_url', image_url: { url: `data:${file.type || 'image/png'};base64,${data}`, ...(part.detail && { detail: part.detail }) } };
}

export function inlined(messages: ChatMessage[]): Promise<ChatMessage[]> {
  return Promise.all(
    messages.map(async (message) => (Array.isArray(message.content) ? { ...message, content: await Promise.all(message.content.map(inlinePart)) } : message)),
  );
}

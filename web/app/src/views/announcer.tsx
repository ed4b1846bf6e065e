// Reads answers out to screen readers, a sentence at a time: announcing every token would be noise.

import { useEffect, useRef, useState } from 'react';
import { useApp } from '../app_context';
import { useStore } from '../state/store';

/** How much of the text is complete sentences or lines. */
export function completePart(text: string): number {
  const ends = [...text.matchAll(/[.!?:](?=\s)|\n/g)];
  return ends.length === 0 ? 0 : ends.at(-1)!.index + 1;
}

export function Announcer() {
  const { chats } = useApp();
  const answering = useStore(chats.store, (state) => state.answering !== null && state.answering === state.current);
  const text = useStore(chats.store, (state) => {
    const head = state.conversations.find(({ id }) => id === state.current)?.head;
    const message = head ? state.messages[head] : undefined;
    return message?.role === 'assistant' ? message.text : '';
  });
  const said = useRef(0);
  const [lines, setLines] = useState<string[]>([]);
  const was = useRef(false);
  useEffect(() => {
    if (answering && !was.current) {
      said.current = text.length;
      setLines(['The answer begins.']);
    } else if (answering || was.current) {
      const upTo = answering ? completePart(text) : text.length;
      if (upTo > said.current) {
        const piece = text.slice(said.current, upTo).replace(/[*_`#|>$]+/g, '').trim();
        said.current = upTo;
        if (piece !== '') setLines((old) => [...old.slice(-20), piece]);
      }
    }
    was.current = answering;
  }, [answering, text]);
  return (
    <div className="visually-hidden" role="log" aria-live="polite" aria-label="Spoken answer">
      {lines.map((line, i) => (
        <p key={i}>{line}</p>
      ))}
    </div>
  );
}

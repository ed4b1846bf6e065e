// Where messages are written.

import { useEffect, useRef, useState } from 'react';
import { useApp, view } from '../app_context';
import { pending, takePending } from '../state/attachments';
import { pathTo } from '../state/tree';
import { settings } from '../state/settings';
import { useStore } from '../state/store';
import { Icon } from '../ui/icons';
import { usePhone } from '../ui/phone';
import { AttachTools, SenseNotice } from './attach';
import { Thumbnails } from './attachments';

function ThinkingSwitch() {
  const on = useStore(settings, (state) => state.thinking);
  return (
    <button type="button" className="chip" aria-pressed={on} onClick={() => settings.set({ thinking: !on })} title="Let the model think before it answers">
      <Icon name="bulb" />
      Think
    </button>
  );
}

export function Composer() {
  const { chats } = useApp();
  const [text, setText] = useState('');
  const current = useStore(chats.store, (state) => state.current);
  const answering = useStore(chats.store, (state) => state.answering !== null);
  const items = useStore(pending, (state) => state.items);
  const empty = text.trim() === '' && items.length === 0;
  const field = useRef<HTMLTextAreaElement>(null);
  const phone = usePhone();

  // A phone's keyboard would cover the conversation.
  useEffect(() => {
    if (!phone) field.current?.focus();
  }, [current, phone]);

  // Grows with its text, for browsers without field-sizing.
  useEffect(() => {
    const area = field.current!;
    if (CSS.supports('field-sizing', 'content')) return;
    area.style.height = 'auto';
    area.style.height = `${area.scrollHeight}px`;
  }, [text]);

  const send = (): void => {
    if (empty || answering) return;
    void chats.send(text.trim(), takePending());
    setText('');
  };
  const editLast = (): boolean => {
    const head = chats.conversation?.head ?? null;
    const mine = pathTo(chats.store.get().messages, head).findLast(({ role }) => role === 'user');
    if (mine) view.set({ editing: mine.id });
    return mine !== undefined;
  };

  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <div className="composer-box">
        <Thumbnails items={items}>
          {text === '' && items.some(({ kind }) => kind === 'audio') && (
            <button type="button" className="chip" disabled={answering} onClick={() => void chats.send('Transcribe the audio.', takePending())}>
              Transcribe
            </button>
          )}
        </Thumbnails>
        <SenseNotice />
        <textarea
          id="message"
          ref={field}
          rows={1}
          value={text}
          placeholder="Write a message"
          aria-label="Message"
          enterKeyHint="send"
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.nativeEvent.isComposing) return;
            if (event.key === 'Enter' && !event.shiftKey) {
              event.preventDefault();
              send();
            } else if (event.key === 'ArrowUp' && text === '' && !answering && editLast()) {
              event.preventDefault();
            }
          }}
        />
        <div className="composer-tools">
          <AttachTools />
          <ThinkingSwitch />
          {answering ? (
            <button type="button" className="round" aria-label="Stop the answer" title="Stop (Esc)" onClick={() => void chats.stop()}>
              <Icon name="stop" />
            </button>
          ) : (
            <button type="submit" className="round primary" aria-label="Send" title="Send (Enter)" disabled={empty}>
              <Icon name="send" />
            </button>
          )}
        </div>
      </div>
      <p className="muted small-print">Models can be wrong. Check what matters.</p>
    </form>
  );
}

// One turn: what was said, and what can be done with it.

import { memo, useState } from 'react';
import { useApp, view } from '../app_context';
import { Markdown } from '../markdown/markdown';
import { duration, rate } from '../state/format';
import { useStore } from '../state/store';
import type { Message } from '../state/tree';
import { CopyButton } from '../ui/copy';
import { Icon } from '../ui/icons';
import { Attachments } from './attachments';

interface Props {
  message: Message;
  /** Ids of all versions of the turn, with spaces between. */
  versions: string;
  last: boolean;
  /** An answer is being written in this conversation. */
  busy: boolean;
}

function Versions({ message, versions }: { message: Message; versions: string }) {
  const { chats } = useApp();
  const ids = versions.split(' ');
  const at = ids.indexOf(message.id);
  if (ids.length < 2) return null;
  const step = (by: number) => (
    <button type="button" className="quiet" disabled={!ids[at + by]} aria-label={by < 0 ? 'Previous version' : 'Next version'} onClick={() => void chats.show(ids[at + by]!)}>
      <Icon name={by < 0 ? 'left' : 'right'} />
    </button>
  );
  return (
    <span className="versions" role="group" aria-label="Versions of this turn">
      {step(-1)}
      <span aria-label={`Version ${at + 1} of ${ids.length}`}>
        {at + 1}/{ids.length}
      </span>
      {step(1)}
    </span>
  );
}

function Editor({ message }: { message: Message }) {
  const { chats } = useApp();
  const [text, setText] = useState(message.text);
  const close = (): void => view.set({ editing: null });
  const save = (): void => {
    close();
    void chats.edit(message, text);
  };
  return (
    <form
      className="editor"
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <Attachments items={message.attachments} />
      <textarea
        autoFocus
        value={text}
        aria-label="Edit your message"
        onFocus={(event) => event.target.setSelectionRange(text.length, text.length)}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing) return;
          if (event.key === 'Escape') {
            event.preventDefault();
            close();
          } else if (event.key === 'Enter' && !event.shiftKey) {
            event.preventDefault();
            save();
          }
        }}
      />
      <div className="actions">
        <button type="button" className="small" onClick={close}>
          Cancel
        </button>
        <button type="submit" className="small primary">
          Send
        </button>
      </div>
    </form>
  );
}

function Thinking({ message }: { message: Message }) {
  if (message.thinking === '') return null;
  const going = message.state === 'streaming' && message.thinkingMs === undefined;
  const label = message.thinkingMs !== undefined ? `Thought for ${duration(message.thinkingMs / 1000)}` : going ? 'Thinking…' : 'Thought';
  return (
    <details className="thinking">
      <summary className={going ? 'pulse' : undefined}>{label}</summary>
      <Markdown text={message.thinking} />
    </details>
  );
}

/** How an answer ended that is not simply done, and what to do then. */
function Ending({ message, last, busy }: Omit<Props, 'versions'>) {
  const { chats, runtime } = useApp();
  const phase = useStore(runtime.store, (state) => state.phase);
  const { state } = message;
  if (state === 'waiting') {
    return <p className="muted pulse">{message.activity ?? (phase === 'ready' ? 'Reading…' : 'Waiting for the model to load…')}</p>;
  }
  const blank = message.text.trim() === '';
  if (state === 'streaming' || (state === 'done' && !blank)) return null;
  const why = { done: 'The model ended its answer without a word.', stopped: 'Stopped.', length: 'The answer reached its longest length.', failed: message.error ?? 'The answer failed.' }[state];
  return (
    <div className={state === 'failed' ? 'ending failed' : 'ending'} role={state === 'failed' ? 'alert' : undefined}>
      <span>{why}</span>
      {last && !busy && (
        <button type="button" className="small" onClick={() => void chats.resume(message)}>
          {blank ? 'Try again' : 'Continue'}
        </button>
      )}
    </div>
  );
}

function Actions({ message, versions, busy }: Omit<Props, 'last'>) {
  const { chats } = useApp();
  const { stats } = message;
  const mine = message.role === 'user';
  return (
    <div className="message-actions">
      <Versions message={message} versions={versions} />
      <CopyButton text={message.text} what={mine ? 'message' : 'answer'} />
      {mine ? (
        <button type="button" className="quiet" aria-label="Edit the message" title="Edit" disabled={busy} onClick={() => view.set({ editing: message.id })}>
          <Icon name="edit" />
        </button>
      ) : (
        <button type="button" className="quiet" aria-label="Answer again" title="Answer again" disabled={busy} onClick={() => void chats.retry(message)}>
          <Icon name="retry" />
        </button>
      )}
      {stats && stats.decodeRate > 0 && (
        <span className="muted stats" title={`${stats.model}: ${stats.tokens} tokens after ${stats.promptTokens} of prompt, ${stats.cachedTokens} of them known already`}>
          {rate(stats.decodeRate)} tok/s
        </span>
      )}
    </div>
  );
}

export const MessageView = memo(({ message, versions, last, busy }: Props) => {
  const editing = useStore(view, (state) => state.editing === message.id);
  const streaming = message.state === 'streaming' || message.state === 'waiting';
  if (editing) return <Editor message={message} />;
  if (message.role === 'user') {
    return (
      <article aria-label="You">
        <Attachments items={message.attachments} />
        {message.text !== '' && <div className="bubble">{message.text}</div>}
        <Actions message={message} versions={versions} busy={busy} />
      </article>
    );
  }
  return (
    <article aria-label="Answer" aria-busy={streaming} className={streaming ? 'streaming' : undefined}>
      <Thinking message={message} />
      <Markdown text={message.text} />
      <Ending message={message} last={last} busy={busy} />
      {!streaming && <Actions message={message} versions={versions} busy={busy} />}
    </article>
  );
});

// The turns of the branch that is shown. Stays at the end while an answer comes, unless the reader scrolled away.

import { useLayoutEffect, useMemo, useRef, useState } from 'react';
import { useApp } from '../app_context';
import { useStore } from '../state/store';
import { turnsOf } from '../state/tree';
import { Icon } from '../ui/icons';
import { DropZone } from './attach';
import { MessageView } from './message';
import { Welcome } from './welcome';

const closeEnough = 60;

export function Conversation() {
  const { chats } = useApp();
  const { current, messages, answering, conversations } = useStore(chats.store, (state) => state);
  const head = conversations.find(({ id }) => id === current)?.head ?? null;
  const turns = useMemo(() => turnsOf(messages, head), [messages, head]);
  const scroller = useRef<HTMLDivElement>(null);
  const [atEnd, setAtEnd] = useState(true);
  const following = useRef(true);
  const toEnd = (): void => {
    const box = scroller.current!;
    box.scrollTop = box.scrollHeight;
  };
  useLayoutEffect(() => {
    following.current = true;
  }, [current, head]);
  useLayoutEffect(() => {
    if (following.current && turns.length > 0) toEnd();
  }, [current, turns]);
  const onScroll = (): void => {
    const box = scroller.current!;
    following.current = box.scrollHeight - box.scrollTop - box.clientHeight < closeEnough;
    setAtEnd(following.current);
  };
  return (
    <div className="conversation">
      <div className="scroller" ref={scroller} onScroll={onScroll} tabIndex={0} role="region" aria-label="Conversation">
        {turns.length === 0 ? (
          <Welcome />
        ) : (
          <ol className="turns">
            {turns.map(({ message, versions }, i) => (
              <li key={message.id} className={message.role}>
                <MessageView message={message} versions={versions.join(' ')} last={i >= turns.length - 1} busy={answering === current} />
              </li>
            ))}
          </ol>
        )}
      </div>
      <DropZone />
      {!atEnd && turns.length > 0 && (
        <button type="button" className="to-end" aria-label="Go to the latest message" onClick={toEnd}>
          <Icon name="down" />
        </button>
      )}
    </div>
  );
}

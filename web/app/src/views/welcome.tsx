// A conversation that has not begun.

import { useApp, view } from '../app_context';
import { nameOf } from '../state/runtime';
import { useStore } from '../state/store';
import { PictureIdea } from './picture_idea';

/** The embedded model is a toy: what it is asked should be what it can do. */
const forNano = ['Tell me a story about a fox.', 'What is 17 + 25?', 'What does the word brave mean?', 'How many minutes are in 3 hours?'];
const forOthers = [
  'Explain how a rainbow forms, with the formula.',
  'Write a Python function that finds prime numbers.',
  'Plan a weekend in a city I have never seen.',
  'What can I cook with eggs and spinach?',
];

export function Welcome() {
  const { chats, runtime } = useApp();
  const name = useStore(runtime.store, (state) => nameOf(state.choice));
  const nano = useStore(runtime.store, (state) => state.choice.kind === 'embedded');
  const sees = useStore(runtime.store, (state) => state.model?.sees ?? false);
  return (
    <div className="welcome">
      <img src="./icon.svg" alt="" width="64" height="64" />
      <h2>What’s on your mind?</h2>
      <p className="muted">{name} runs inside this page. What you write stays on this device, and it works without a network.</p>
      <div className="ideas">
        {(nano ? forNano : forOthers).map((idea) => (
          <button type="button" key={idea} onClick={() => void chats.send(idea)}>
            {idea}
          </button>
        ))}
        {sees && <PictureIdea />}
      </div>
      {nano && (
        <p className="muted hint">
          Nano is a toy of Gemma 4’s build, so that everything works at once.{' '}
          <button type="button" className="link" onClick={() => view.set({ dialog: 'models' })}>
            Choose a Gemma 4
          </button>{' '}
          for real answers.
        </p>
      )}
    </div>
  );
}

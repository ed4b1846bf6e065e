// What the engine has computed of conversations, kept over the end of the page: a long one goes on without being read
// again from its beginning. Only a convenience, so whatever fails here is forgotten.

import type { ModelLike } from '../engine/like';

/** As many as the engine itself holds at a time. */
const heldAtOnce = 2;
/** Shorter ones are read in no time. */
const fewTokens = 64;
const idleMs = 1000;

export class Returning {
  /** What a model holds, the latest first. */
  private readonly held = new WeakMap<ModelLike, string[]>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private saving = new AbortController();

  /** Before a conversation is answered. */
  async before(model: ModelLike, conversation: string): Promise<void> {
    clearTimeout(this.timer);
    this.saving.abort();
    const held = this.held.get(model) ?? [];
    if (!held.includes(conversation)) {
      await model.restoreState(conversation).catch(() => model.dropState(conversation).catch(() => {}));
    }
    this.held.set(model, [conversation, ...held.filter((id) => id !== conversation)].slice(0, heldAtOnce));
  }

  /** After it was: kept as soon as nothing else is asked for a moment. */
  after(model: ModelLike, conversation: string, tokens: number): void {
    if (tokens < fewTokens) return;
    const { signal } = (this.saving = new AbortController());
    this.timer = setTimeout(() => void model.saveState(conversation, { signal }).catch(() => {}), idleMs);
  }
}

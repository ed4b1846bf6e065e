// Conversations: the list, the one that is open, and its answers.

import { messageOf } from './format';
import type { Bundle, Database } from './db';
import { titleOf, type Attachment } from './attachments';
import { Answering } from './answering';
import type { Perf } from './perf';
import { Returning } from './returning';
import type { Runtime } from './runtime';
import { Store } from './store';
import { latestLeaf, pathTo, settled, type Conversation, type Message, type Messages } from './tree';

export interface ChatsState {
  ready: boolean;
  conversations: Conversation[];
  /** The conversation that is open; null: a new one, which begins with its first message. */
  current: string | null;
  /** Those of the open conversation. */
  messages: Messages;
  /** The conversation in which an answer is being written. */
  answering: string | null;
  /** Why conversations are not kept. */
  notKept: string | null;
}

const newId = (): string => crypto.randomUUID?.() ?? Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join('');
const titleFrom = (text: string): string => {
  const line = text.trim().split('\n')[0]!.slice(0, 200);
  return line.length <= 60 ? line || 'New chat' : `${line.slice(0, 60).replace(/\s+\S*$/, '')}…`;
};

const byId = (messages: Message[]): Messages => Object.fromEntries(messages.map((message) => [message.id, message]));

export class Chats {
  readonly store = new Store<ChatsState>({
    ready: false,
    conversations: [],
    current: null,
    messages: {},
    answering: null,
    notKept: null,
  });
  private db: Database | undefined;
  private readonly returning = new Returning();
  private running: { answer: Answering; message: Message } | undefined;
  private starting: Promise<void> | undefined;
  /** Messages that the database did not take. */
  private readonly unsaved = new Map<string, Message>();
  /** Calls of `open`, and changes: what was asked for before the latest of them is out of date when it has been read. */
  private opened = 0;
  private changed = 0;

  constructor(
    private readonly openDatabase: () => Promise<Database>,
    private readonly runtime: Runtime,
    private readonly perf: Perf,
  ) {}

  /** `wanted` is asked when the list is there: somebody may have gone elsewhere meanwhile. */
  start(wanted: () => string | null): Promise<void> {
    return (this.starting ??= this.begin(wanted));
  }
  private async begin(wanted: () => string | null): Promise<void> {
    try {
      this.db = await this.openDatabase();
      await this.list(this.db);
    } catch (error) {
      this.notKept(error);
    }
    await this.open(wanted());
    this.store.set({ ready: true });
  }

  /** Reads again what another tab may have changed meanwhile. */
  async refresh(): Promise<void> {
    if (!this.db || this.running || this.unsaved.size > 0 || !this.store.get().ready) return;
    await this.list(this.db);
    await this.open(this.store.get().current);
  }

  /** Keeps what is shown of an unfinished answer: the page is going, or may be ended while nobody sees it. */
  async keepRunning(): Promise<void> {
    if (this.running) await this.keep(undefined, [this.running.message]);
  }

  private async list(db: Database): Promise<void> {
    let changed: number;
    let conversations: Conversation[];
    do {
      changed = this.changed;
      conversations = await db.conversations();
    } while (changed !== this.changed);
    this.store.set({ conversations: conversations.sort((a, b) => b.updated - a.updated) });
  }

  async open(id: string | null): Promise<void> {
    const call = ++this.opened;
    const known = this.store.get().conversations.some((conversation) => conversation.id === id);
    if (id === null || !known) {
      this.store.set({ current: null, messages: {} });
      return;
    }
    const read = await this.messagesOf(id);
    if (call !== this.opened) return;
    const { current, messages } = this.store.get();
    const live = this.running?.message;
    this.store.set({
      current: id,
      // What was said here meanwhile is not among those that were read.
      messages: { ...(current === id && messages), ...byId(read), ...(live?.conversation === id && byId([live])) },
    });
  }

  private async messagesOf(id: string): Promise<Message[]> {
    const read = (await this.db?.messages(id).catch((error) => this.notKept(error))) ?? [];
    const unsaved = [...this.unsaved.values()].filter(({ conversation }) => conversation === id);
    return Object.values({ ...byId(read.map(settled)), ...byId(unsaved) });
  }

  get conversation(): Conversation | undefined {
    const { current, conversations } = this.store.get();
    return conversations.find(({ id }) => id === current);
  }

  /** Says something at the end of the branch that is shown. */
  async send(text: string, attachments: Attachment[] = []): Promise<void> {
    if (text.trim() === '' && attachments.length === 0) return;
    await this.starting;
    await this.ask(text, this.conversation?.head ?? null, attachments);
  }

  /** Says something else instead: a new branch. */
  async edit(message: Message, text: string): Promise<void> {
    const { attachments = [] } = message;
    if ((text.trim() === '' && attachments.length === 0) || text === message.text) return;
    await this.ask(text, message.parent, attachments);
  }

  /** Another answer to the same: a new branch. */
  async retry(message: Message): Promise<void> {
    const { conversation } = this;
    if (conversation) await this.answer(conversation, this.draft(conversation.id, message.parent, 'assistant', '', 'waiting'));
  }

  /** Goes on with an answer that was cut short. */
  async resume(message: Message): Promise<void> {
    if (message.text.trim() === '') return this.retry(message);
    const { conversation } = this;
    const { error: _, ...rest } = message;
    if (conversation) await this.answer(conversation, { ...rest, state: 'waiting' });
  }

  /** Ends the answer that is being written, and waits until it is kept. */
  async stop(): Promise<void> {
    await this.running?.answer.stop();
  }

  /** Shows the branch through this message. */
  async show(id: string): Promise<void> {
    const { conversation } = this;
    if (conversation) await this.keep({ ...conversation, head: latestLeaf(this.store.get().messages, id) }, []);
  }

  async rename(id: string, title: string): Promise<void> {
    const conversation = this.store.get().conversations.find((one) => one.id === id);
    if (conversation && title.trim() !== '') await this.keep({ ...conversation, title: title.trim().slice(0, 200) }, []);
  }

  /** Gives what `restore` needs to bring it back. */
  async remove(id: string): Promise<Bundle | undefined> {
    if (this.store.get().answering === id) await this.stop();
    const bundle = await this.bundle(id);
    this.changed++;
    await this.db?.remove(id);
    for (const message of bundle?.messages ?? []) this.unsaved.delete(message.id);
    const { conversations, current } = this.store.get();
    void this.runtime.loaded?.dropState(id).catch(() => {});
    this.store.set({ conversations: conversations.filter((one) => one.id !== id) });
    if (current === id) await this.open(null);
    return bundle;
  }
  async restore({ conversation, messages }: Bundle): Promise<void> {
    await this.keep(conversation, messages);
  }

  async bundle(id: string): Promise<Bundle | undefined> {
    const { conversations, current, messages } = this.store.get();
    const conversation = conversations.find((one) => one.id === id);
    if (!conversation) return undefined;
    return { conversation, messages: id === current ? Object.values(messages) : await this.messagesOf(id) };
  }

  async search(text: string): Promise<Set<string>> {
    return (await this.db?.search(text)) ?? new Set();
  }

  private draft(conversation: string, parent: string | null, role: Message['role'], text: string, state: Message['state']): Message {
    return { id: newId(), conversation, parent, role, text, thinking: '', created: Date.now(), state };
  }

  private async ask(text: string, parent: string | null, attachments: Attachment[]): Promise<void> {
    const now = Date.now();
    const conversation = this.conversation ?? { id: newId(), title: titleFrom(text || titleOf(attachments)), created: now, updated: now, head: null };
    if (this.store.get().current !== conversation.id) this.store.set({ current: conversation.id, messages: {} });
    const question = { ...this.draft(conversation.id, parent, 'user', text, 'done'), ...(attachments.length > 0 && { attachments }) };
    await this.answer(conversation, this.draft(conversation.id, question.id, 'assistant', '', 'waiting'), [question]);
  }

  private async answer(conversation: Conversation, draft: Message, questions: Message[] = []): Promise<void> {
    // Before anything is waited for: after that, another conversation may be open.
    const before = [...pathTo(this.store.get().messages, (questions[0] ?? draft).parent), ...questions];
    while (this.running) await this.stop(); // two requests at once: the later one counts
    const answer = new Answering(this.runtime, this.returning, this.perf, {
      show: (message) => {
        this.running = { answer, message };
        this.put(message);
      },
      keep: (message) => this.keep(undefined, [message]),
    });
    this.running = { answer, message: draft };
    this.store.set({ answering: conversation.id });
    await this.keep({ ...conversation, head: draft.id, updated: Date.now() }, [...questions, draft]);
    await answer.run(before, draft);
    if (this.running?.answer !== answer) return;
    this.running = undefined;
    this.store.set({ answering: null });
  }

  private put(...changed: Message[]): void {
    const { current, messages } = this.store.get();
    const mine = changed.filter(({ conversation }) => conversation === current);
    if (mine.length > 0) this.store.set({ messages: { ...messages, ...byId(mine) } });
  }

  private async keep(conversation: Conversation | undefined, messages: Message[]): Promise<void> {
    this.put(...messages);
    for (const message of messages) this.unsaved.set(message.id, message); // until they are
    if (conversation) {
      this.changed++;
      const others = this.store.get().conversations.filter(({ id }) => id !== conversation.id);
      this.store.set({ conversations: [conversation, ...others].sort((a, b) => b.updated - a.updated) });
    }
    try {
      await this.db?.save(conversation, messages);
      if (this.db) for (const message of messages) if (this.unsaved.get(message.id) === message) this.unsaved.delete(message.id);
    } catch (error) {
      this.notKept(error);
    }
  }

  private notKept(error: unknown): void {
    const why = `Conversations cannot be kept in this browser: ${messageOf(error)}. They last until this page is closed; export what matters.`;
    this.store.set({ notKept: why });
  }
}

// Conversations in IndexedDB, on this device only. Where a browser refuses it, they last as long as the page.

import { openDB, type DBSchema, type IDBPDatabase } from 'idb';
import type { Conversation, Message } from './tree';

interface Schema extends DBSchema {
  conversations: { key: string; value: Conversation };
  messages: { key: string; value: Message; indexes: { conversation: string } };
}

export interface Bundle {
  conversation: Conversation;
  messages: Message[];
}

export class Database {
  private constructor(private readonly db: IDBPDatabase<Schema>) {}

  static async open(): Promise<Database> {
    const db = await openDB<Schema>('bezel', 1, {
      upgrade(fresh) {
        fresh.createObjectStore('conversations', { keyPath: 'id' });
        fresh.createObjectStore('messages', { keyPath: 'id' }).createIndex('conversation', 'conversation');
      },
    });
    return new Database(db);
  }

  async conversations(): Promise<Conversation[]> {
    return this.db.getAll('conversations');
  }
  async messages(conversation: string): Promise<Message[]> {
    return this.db.getAllFromIndex('messages', 'conversation', conversation);
  }
  async save(conversation: Conversation | undefined, messages: Message[]): Promise<void> {
    const write = this.db.transaction(['conversations', 'messages'], 'readwrite');
    if (conversation) void write.objectStore('conversations').put(conversation);
    for (const message of messages) void write.objectStore('messages').put(message);
    write.commit(); // at once: a page that is going has no later
    await write.done;
  }
  async remove(id: string): Promise<void> {
    const write = this.db.transaction(['conversations', 'messages'], 'readwrite');
    void write.objectStore('conversations').delete(id);
    for (const key of await write.objectStore('messages').index('conversation').getAllKeys(id)) void write.objectStore('messages').delete(key);
    await write.done;
  }
  /** The conversations in which a message contains the text. */
  async search(text: string): Promise<Set<string>> {
    const wanted = text.toLowerCase();
    const found = new Set<string>();
    let cursor = await this.db.transaction('messages').store.openCursor();
    while (cursor) {
      if (cursor.value.text.toLowerCase().includes(wanted)) found.add(cursor.value.conversation);
      cursor = await cursor.continue();
    }
    return found;
  }
}

// What the app needs of an engine. The product uses bezel's; tests of the interface use a scripted one.

import type { ChatMessage, ChatOptions, ChatPart, DeviceInfo, Fit, LoadOptions, ModelInfo, ModelSource, StoreClient } from 'bezel';

export interface ModelLike {
  readonly info: ModelInfo;
  chat(messages: ChatMessage[], options?: ChatOptions): AsyncIterable<ChatPart>;
  saveState(key: string, options: { signal: AbortSignal }): Promise<unknown>;
  restoreState(key: string): Promise<number>;
  dropState(key: string): Promise<void>;
  unload(): Promise<void>;
}

export type StoreLike = Pick<StoreClient, 'list' | 'download' | 'importFile' | 'delete' | 'quota'>;

export interface EngineLike {
  readonly deviceInfo: DeviceInfo | undefined;
  readonly cpuReason: string | undefined;
  readonly store: StoreLike;
  load(source: ModelSource, options?: LoadOptions): Promise<ModelLike>;
  probe(source: ModelSource): Promise<Fit>;
  memory(): Promise<{ gpu: number; heap: number }>;
  close(): void;
}

export type StartEngine = () => Promise<EngineLike>;

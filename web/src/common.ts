// What the package exports everywhere.

export type { Chat, ChatOptions, ChunkStream, Completions, RequestOptions } from './chat.js';
export { Engine, Model, Session, type EngineOptions, type LoadHints, type LoadOptions, type ModelSource } from './engine.js';
export type { Channels, Pixels } from './decode.js';
export type { Fit } from './fit.js';
export { EngineModule, type CallOptions, type ModuleOptions } from './module.js';
export type * from './openai.js';
export * from './protocol.js';
export { type StoreActivity, type StoreProgress } from './progress.js';
export { RemoteModel, type RemoteOptions } from './remote.js';
export { Sha256 } from './sha256.js';
export { blobSource, bytesSource, syncSource, urlSource, type Source } from './sources.js';
export type { SavedState, Sink } from './states.js';
export * from './store.js';
export type { StoreClient } from './store_client.js';
export { readWav, writeWav, type Recording } from './wav.js';

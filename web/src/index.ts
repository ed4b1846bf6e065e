export { EngineModule, type CallOptions, type ModuleOptions } from './module.js';
export * from './protocol.js';
export { blobSource, bytesSource, syncSource, urlSource, type Source } from './sources.js';
export { type StoreActivity, type StoreProgress } from './progress.js';
export { Sha256 } from './sha256.js';
export * from './store.js';

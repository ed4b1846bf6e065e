export { EngineModule, type CallOptions, type ModuleOptions } from './module.js';
export * from './protocol.js';
export { blobSource, bytesSource, syncSource, urlSource, type Source } from './sources.js';

// What the engine can be asked: one entry per method of src/api/service.cc.

import type { ChatCompletion, ChatCompletionChunk, ChatRequest } from './openai.js';
import type { StoreProgress } from './progress.js';
import type { StateCall } from './states.js';
import type { StoreCall } from './store_client.js';

/** The numbers with which devices, models and sessions are named. */
export type DeviceId = number;
export type ModelId = number;
export type SessionId = number;

/** Features and limits to do without: how a small adapter is imitated. Everything is used by default. */
export interface DeviceOptions {
  f16?: boolean;
  subgroups?: boolean;
  subgroupMatrix?: boolean;
  integerDots?: boolean;
  timestamps?: boolean;
  /** Bytes of all buffers together. */
  maxMemory?: number;
  maxBinding?: number;
  maxStorageBindings?: number;
  maxInvocations?: number;
}

export interface DeviceInfo {
  name: string;
  vendor: string;
  backend: string;
  software: boolean;
  maxBuffer: number;
  maxBinding: number;
  maxStorageBindings: number;
  maxInvocations: number;
  maxWorkgroupMemory: number;
  f16: boolean;
  subgroups: boolean;
  timestamps: boolean;
  subgroupMatrix: boolean;
  integerDots: boolean;
}

export interface ModelInfo {
  model: ModelId;
  vocabulary: number;
  context: number;
  layers: number;
  width: number;
  /** Tokens of one forward pass at most. */
  batch: number;
  parameters: number;
  weightBytes: number;
  /** Bytes of weights that decoding one token reads. */
  bytesPerToken: number;
  /** Pictures can be in its messages, and recordings. */
  sees: boolean;
  hears: boolean;
  /** For the next `load`, where something was found out about the GPU; the host keeps it. */
  tuning?: string;
}

/** What a model needs, from its header. */
export interface ModelCost {
  context: number;
  vocabulary: number;
  parameters: number;
  weightBytes: number;
  /** Of those, the per-layer embedding table, of which a token reads one row. */
  tableBytes: number;
  bytesPerToken: number;
  /** Elements of the KV cache: for each token, and whatever the context. */
  kvPerToken: number;
  kvFixed: number;
  /** Bytes of the largest piece that one binding must hold. */
  largestRow: number;
  /** The file has encoders of pictures and of sounds. */
  sees: boolean;
  hears: boolean;
}

/** A file of the model, as `Sources.add` numbered it. A model may come in several. */
export interface Part {
  source: number;
  size: number;
  name: string;
}

/** Where a model's bytes are, in a form that can be sent to a worker. */
export type SourceSpec =
  | { kind: 'url'; url: string; headers?: Record<string, string> }
  | { kind: 'blob'; blob: Blob; name: string }
  | { kind: 'bytes'; bytes: Uint8Array; name: string }
  | { kind: 'file'; path: string }
  /** Downloaded into the store. */
  | { kind: 'stored'; key: string };

/** How keys and values are kept: f32; f16, half the memory; q8, little more than a quarter, for heads of a multiple of 32 numbers. */
export type KvType = 'f32' | 'f16' | 'q8';

export interface LoadArguments {
  parts: Part[];
  /** A file of encoders (mmproj), for a model whose own file has none. */
  projector?: Part;
  /** None: the CPU computes, slowly and in double precision. */
  device?: DeviceId;
  kv?: KvType;
  bf16Rope?: boolean;
  batch?: number;
  /** Where the per-layer embedding table lies: on the GPU, or in the file, read row by row. */
  perLayerTable?: 'auto' | 'device' | 'source';
  /** Bytes that the weights may take on the GPU; what `auto` goes by. */
  memoryBudget?: number;
  /** What `tune` and loads found earlier; the host gives what it kept. Of another GPU, it has no effect. */
  tuning?: string;
  /** Products that follow each other as one dispatch, or each alone; `trial`: what is found faster; `auto`: what was, and on NVIDIA's GPUs `trial`. */
  relays?: 'auto' | 'trial' | 'on' | 'off';
  /** What a model store knows about the model beside its file. */
  renderer?: string;
  modelName?: string;
  parameterSize?: string;
  ollamaParams?: string;
}

/** An OpenAI-shaped message or tool; src/text/chat.h says what is read of it. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json | undefined };

export interface RenderArguments {
  model: ModelId;
  messages: Json;
  tools?: Json;
  thinking?: boolean;
  continueLast?: boolean;
}

export interface GenerateArguments {
  session: SessionId;
  /** Token ids. What the session already holds of them is not computed again. */
  prompt: number[];
  max_tokens?: number;
  temperature?: number;
  top_k?: number;
  top_p?: number;
  min_p?: number;
  repetition_penalty?: number;
  presence_penalty?: number;
  frequency_penalty?: number;
  /** Random when there is none. */
  seed?: number;
  stop?: string[];
  logprobs?: boolean;
  top_logprobs?: number;
  /** From token ids to what is added to their logits. */
  logit_bias?: Record<string, number>;
  suppressed?: number[];
  tools?: Json;
  inThought?: boolean;
  thinking?: boolean;
  /** Also send a `token` event for each token. */
  tokenEvents?: boolean;
}

export interface GenerateResult {
  reason: 'stop' | 'length' | 'tool_calls';
  /** The caller stopped it. */
  stopped: boolean;
  promptTokens: number;
  reusedTokens: number;
  generatedTokens: number;
  position: number;
}

export interface BenchPart {
  tokens_per_second: number;
  pass_tokens: number;
  dispatches: number;
  /** The most expensive first; times only where the GPU has timestamps. */
  kernels: { label: string; dispatches: number; milliseconds: number | null }[];
}
/** One product, in one variant of its kernel. */
export interface BenchReport {
  prefill: BenchPart;
  decode: BenchPart;
  bytes_per_token: number;
  read_bandwidth: number | null;
  bandwidth_share: number | null;
}

/** A product of a matrix with vectors, one for each token. */
export interface KernelShape {
  /** As GGUF names it: Q4_K. */
  type: string;
  rows: number;
  cols: number;
  tokens?: number;
}
/** Of one product. */
export interface KernelRate extends Required<KernelShape> {
  variant: string;
  milliseconds: number;
  /** Milliseconds of what precedes products with the same tokens. */
  preparation: number;
  bytes_per_second: number;
  operations_per_second: number;
}

/** Products as one dispatch of a decoded token, or of a pass over a prompt, computes them. */
export interface TunedProduct {
  kernel: string;
  type: string;
  rows: number;
  cols: number;
  /** Of a prompt's pass; 0: of one token that is decoded. */
  tokens: number;
  /** Of such a pass. */
  dispatches: number;
  /** Empty: what the engine's table says is as good. */
  variant: string;
  /** Microseconds of a dispatch. */
  before: number;
  after: number;
}
export interface TuneReport {
  products: TunedProduct[];
  /** Variants, and how many of them there was time for. */
  variants: number;
  tried: number;
  /** For `load`. */
  tuning: string;
}

/** Whatever is asked, an answer may also have a `tuning` as ModelInfo has it: relays can fail later too. */
export interface Methods {
  open_device: { args: DeviceOptions; result: { device: DeviceId; info: DeviceInfo } };
  close_device: { args: { device: DeviceId }; result: object };
  load: { args: LoadArguments; result: ModelInfo };
  /** Reads the header only. */
  probe: { args: { parts: Part[] }; result: ModelCost };
  unload: { args: { model: ModelId }; result: object };
  tokenize: { args: { model: ModelId; text: string; special?: boolean }; result: { tokens: number[] } };
  detokenize: { args: { model: ModelId; tokens: number[] }; result: { text: string } };
  render: { args: RenderArguments; result: { text: string; tokens: number[]; inThought: boolean } };
  open_session: {
    args: { model: ModelId; context?: number };
    result: { session: SessionId; context: number; bytes: number };
  };
  close_session: { args: { session: SessionId }; result: object };
  /** `numbers` are the logits of the last token, or with `all` of every token, row by row. */
  feed: {
    args: { session: SessionId; tokens: number[]; all?: boolean };
    result: { position: number; numbers: Float32Array };
  };
  rewind: { args: { session: SessionId; count: number }; result: { position: number } };
  generate: { args: GenerateArguments; result: GenerateResult };
  /** Answers a chat, re-using what sessions of the model hold of it. Sends `chunk` events when `stream` is set. */
  complete: { args: { model: ModelId; request: ChatRequest; context?: number; name?: string }; result: ChatCompletion };
  /** Writes what the session of the last `complete` holds to a sink of the host. */
  save_state: { args: { model: ModelId; sink: number }; result: { tokens: number; bytes: number } };
  /** Takes it over, so that the next `complete` with the same context finds it. */
  restore_state: { args: { model: ModelId; part: Part; context?: number }; result: { tokens: number } };
  bench: {
    args: { model: ModelId; prompt?: number; generate?: number; depth?: number; repetitions?: number };
    result: BenchReport;
  };
  /** Times the kernels of a token in their variants; sessions opened from here on use the fastest. `seconds`: after which it ends. */
  tune: { args: { model: ModelId; software?: boolean; seconds?: number; rounds?: number }; result: TuneReport };
  /** Times single kernels in all their variants, with the shapes of the published models; `tiles`: only with many tokens. */
  bench_kernels: { args: { device: DeviceId; tiles?: boolean }; result: { rates: KernelRate[] } };
  /**
   * Medians of runs of `products` products, from the submission until the last result is read. `units`: the
   * kernel of a real GPU or that of a software adapter, whatever this one is.
   */
  bench_products: {
    args: { device: DeviceId; shapes: KernelShape[]; products?: number; repetitions?: number; units?: boolean };
    result: { kernels: KernelRate[] };
  };
  /** Encodes a picture, 3 or 4 bytes a pixel; messages then name it as { type: 'image', media }. */
  see: {
    args: { model: ModelId; pixels: Part; width: number; height: number; budget?: number };
    result: { media: number; tokens: number };
  };
  /** The same of a recording: 32-bit floats, the channels in turn; or a WAV file. */
  hear: {
    args: { model: ModelId } & ({ samples: Part; rate: number; channels: number } | { file: Part });
    result: { media: number; tokens: number };
  };
  forget: { args: { model: ModelId; media: number }; result: object };
  /** Gives back the memory of the encoders until they are needed again. */
  release_encoders: { args: { model: ModelId }; result: object };
  memory: { args: object; result: { gpu: number; models: number; sessions: number } };
}

export type Method = keyof Methods;

/** What a request tells while it runs. */
export type EngineEvent =
  | { type: 'progress'; done: number; total: number }
  | { type: 'store'; progress: StoreProgress }
  | { type: 'chunk'; chunk: ChatCompletionChunk }
  | { type: 'text'; text: string }
  | { type: 'thinking'; text: string }
  | { type: 'tool_call'; name: string; arguments: string }
  | { type: 'malformed_call'; text: string }
  | { type: 'token'; id: number; logprob: number; top: { id: number; logprob: number }[] };

/** The first ones in the order of ErrorKind in src/base/result.h. */
export const errorKinds = [
  'invalid',
  'unsupported',
  'not-found',
  'io',
  'memory',
  'cancelled',
  'device-lost',
  'crashed',
  'quota',
  'busy',
] as const;
export type ErrorKind = (typeof errorKinds)[number];

/** Every error of the engine. The message says what happened and what to do, in full sentences. */
export class BezelError extends Error {
  override readonly name = 'BezelError';
  constructor(
    readonly kind: ErrorKind,
    message: string,
    /** Numbers for a program to act on, such as the bytes `needed` and `available` of the kind `quota`. */
    readonly detail?: Readonly<Record<string, number>>,
  ) {
    super(message);
  }
}

/** What a page sends to the worker that runs the engine, and what comes back. Requests are numbered by the page. */
export type ToWorker =
  | { type: 'start'; id: number; wasm: string }
  | { type: 'call'; id: number; method: Method; args: Methods[Method]['args'] }
  | { type: 'source'; id: number; spec: SourceSpec }
  | { type: 'heap'; id: number }
  | { type: 'store'; id: number; call: StoreCall }
  | { type: 'state'; id: number; call: StateCall }
  | { type: 'stop'; id: number };

export type FromWorker =
  | { type: 'event'; id: number; event: EngineEvent }
  | { type: 'result'; id: number; value: unknown }
  | { type: 'error'; id: number; kind: ErrorKind; message: string; detail: Readonly<Record<string, number>> | undefined };

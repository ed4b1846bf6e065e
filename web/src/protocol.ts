// What the engine can be asked: one entry per method of src/api/service.cc.

/** The numbers with which devices, models and sessions are named. */
export type DeviceId = number;
export type ModelId = number;
export type SessionId = number;

/** Features and limits to do without: how a small adapter is imitated. Everything is used by default. */
export interface DeviceOptions {
  f16?: boolean;
  subgroups?: boolean;
  subgroupMatrix?: boolean;
  timestamps?: boolean;
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
}

/** A file of the model, as `Sources.add` numbered it. A model may come in several. */
export interface Part {
  source: number;
  size: number;
  name: string;
}

export interface LoadArguments {
  parts: Part[];
  /** None: the CPU computes, slowly and in double precision. */
  device?: DeviceId;
  /** Keys and values in half precision: half the memory. */
  kvF16?: boolean;
  bf16Rope?: boolean;
  batch?: number;
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
  seed?: number;
  stop?: string[];
  logprobs?: number;
  logit_bias?: [token: number, bias: number][];
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

/** A chat completion in OpenAI's shape, in a session or, with `model`, in one that the engine keeps for such requests. */
export type CompleteArguments = ({ session: SessionId } | { model: ModelId; context?: number }) & {
  /** The body of a POST to /v1/chat/completions; src/api/openai.h says what is read of it beside OpenAI's fields. */
  request: Json;
  /** How the completion calls the model; else the request's own `model`. */
  name?: string;
};

export interface ToolCall {
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
}

export interface TokenLogprob {
  token: string;
  logprob: number;
  bytes: number[];
}
export type Logprobs = { content: (TokenLogprob & { top_logprobs: TokenLogprob[] })[] } | null;

export type FinishReason = 'stop' | 'length' | 'tool_calls';

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number };
}

/** Absent where nothing was measured. */
export interface Timings {
  time_to_first_token_ms?: number;
  prefill_ms?: number;
  decode_ms?: number;
  prefill_tokens_per_second?: number;
  decode_tokens_per_second?: number;
}

export interface ChatCompletion {
  id: string;
  object: 'chat.completion';
  created: number;
  model: string;
  choices: {
    index: number;
    message: {
      role: 'assistant';
      content: string | null;
      reasoning_content?: string;
      tool_calls?: ToolCall[];
    };
    logprobs: Logprobs;
    finish_reason: FinishReason;
  }[];
  usage: Usage;
  timings: Timings;
}

export interface ChatCompletionChunk {
  id: string;
  object: 'chat.completion.chunk';
  created: number;
  model: string;
  choices: {
    index: number;
    delta: {
      role?: 'assistant';
      content?: string;
      reasoning_content?: string;
      tool_calls?: (ToolCall & { index: number })[];
    };
    logprobs: Logprobs;
    finish_reason: FinishReason | null;
  }[];
  usage?: Usage | null;
  timings?: Timings;
}

export interface Methods {
  open_device: { args: DeviceOptions; result: { device: DeviceId; info: DeviceInfo } };
  close_device: { args: { device: DeviceId }; result: object };
  load: { args: LoadArguments; result: ModelInfo };
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
  /** The chunks are events where the request says `stream: true`. */
  complete: { args: CompleteArguments; result: ChatCompletion };
  memory: { args: object; result: { gpu: number; models: number; sessions: number } };
}

export type Method = keyof Methods;

/** What a request tells while it runs. */
export type EngineEvent =
  | { type: 'progress'; done: number; total: number }
  | { type: 'text'; text: string }
  | { type: 'thinking'; text: string }
  | { type: 'tool_call'; name: string; arguments: string }
  | { type: 'malformed_call'; text: string }
  | { type: 'chunk'; chunk: ChatCompletionChunk }
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
] as const;
export type ErrorKind = (typeof errorKinds)[number];

/** Every error of the engine. The message says what happened and what to do, in full sentences. */
export class BezelError extends Error {
  override readonly name = 'BezelError';
  constructor(
    readonly kind: ErrorKind,
    message: string,
  ) {
    super(message);
  }
}

// OpenAI's chat completions. The shapes are theirs, so that code and types written for that API fit: whatever their
// types allow is accepted, and what bezel cannot do is refused when it is asked for, with a sentence that says so.
// `timings`, `reasoning_content`, `thinking` and some ways of sampling are additions. test/openai_types.ts holds them
// against the official package's types.

import type { Channels, Pixels } from './decode.js';
import type { Recording } from './wav.js';

/** `function` was OpenAI's first form of `tool`; it is refused. */
export type Role = 'system' | 'developer' | 'user' | 'assistant' | 'tool' | 'function';

export interface TextPart {
  type: 'text';
  text: string;
}
/** Pictures, sounds and videos as objects, beside OpenAI's forms. */
export type MediaPart =
  /** A file, anything that can be drawn, or pixels. `token_budget`: the most tokens it takes, 70, 140, 280, 560 or 1120. */
  | { type: 'image'; image: Blob | Pixels | ImageBitmapSource; detail?: 'auto' | 'low' | 'high'; token_budget?: number }
  /** A file, an AudioBuffer, or samples. The first 30 seconds are heard. */
  | { type: 'audio'; audio: Blob | Channels | Recording }
  /** A file or an element, of which up to `max_frames` (32) are seen, or the frames themselves. */
  | {
      type: 'video';
      video: Blob | HTMLVideoElement | { frames: { image: Blob | Pixels | ImageBitmapSource; seconds: number }[] };
      token_budget?: number;
      max_frames?: number;
    };
/** A part of a message. Files are refused, as are pictures and sounds by models that know none. */
export type ContentPart =
  | TextPart
  | { type: 'refusal'; refusal: string }
  /** A data:, blob: or other address; the last is fetched by the page. */
  | { type: 'image_url'; image_url: { url: string; detail?: 'auto' | 'low' | 'high'; token_budget?: number } }
  /** Base64. WAV everywhere, in a page whatever the browser plays. */
  | { type: 'input_audio'; input_audio: { data: string; format: string } }
  | MediaPart
  | { type: 'file'; file: { file_data?: string; file_id?: string; filename?: string } };

export interface ToolCall {
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
}
export interface ChatMessage {
  role: Role;
  content?: string | ContentPart[] | null;
  name?: string;
  reasoning_content?: string | null;
  tool_calls?: (ToolCall | { id: string; type: 'custom'; custom: object })[];
  tool_call_id?: string;
}
/** Tools of the type `custom` are refused. */
export type Tool =
  | { type: 'function'; function: { name: string; description?: string; parameters?: object; strict?: boolean | null } }
  | { type: 'custom'; custom: object };

export interface ChatRequest {
  messages: ChatMessage[];
  model?: string;
  stream?: boolean | null;
  stream_options?: { include_usage?: boolean } | null;
  tools?: Tool[];
  /** A call cannot be forced: all but `none` and `auto` is refused. */
  tool_choice?: 'none' | 'auto' | 'required' | { type: 'function' | 'custom' | 'allowed_tools' };
  max_tokens?: number | null;
  max_completion_tokens?: number | null;
  temperature?: number | null;
  top_p?: number | null;
  top_k?: number;
  min_p?: number;
  repetition_penalty?: number;
  presence_penalty?: number | null;
  frequency_penalty?: number | null;
  logit_bias?: Record<string, number> | null;
  stop?: string | string[] | null;
  seed?: number | null;
  logprobs?: boolean | null;
  top_logprobs?: number | null;
  /** Only 1. */
  n?: number | null;
  /** Only `text`. */
  response_format?: { type: 'text' | 'json_object' | 'json_schema' };
  /** More than `minimal` is the same as `thinking`. */
  reasoning_effort?: string | null;
  /** Read by nobody here. */
  user?: string;
  store?: boolean | null;
  metadata?: Record<string, string> | null;
  parallel_tool_calls?: boolean;
  service_tier?: string | null;
  safety_identifier?: string | null;
  prompt_cache_key?: string | null;
  verbosity?: string | null;
  /** Let the model think before it answers; the thought comes as `reasoning_content`. */
  thinking?: boolean;
  /** The last message, an assistant's, is continued instead of answered. */
  continue_final_message?: boolean;
}

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'function_call';

export interface TokenLogprob {
  token: string;
  logprob: number;
  bytes: number[] | null;
  top_logprobs: { token: string; logprob: number; bytes: number[] | null }[];
}
export interface Logprobs {
  content: TokenLogprob[] | null;
  refusal: null;
}

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details?: { cached_tokens?: number };
}

/** How fast it went; milliseconds and tokens per second. What could not be measured is missing. */
export interface Timings {
  time_to_first_token_ms?: number;
  prefill_ms?: number;
  decode_ms?: number;
  prefill_tokens_per_second?: number;
  decode_tokens_per_second?: number;
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
      content?: string | null;
      reasoning_content?: string | null;
      tool_calls?: { index: number; id?: string; type?: 'function'; function?: { name?: string; arguments?: string } }[];
    };
    finish_reason: FinishReason | null;
    logprobs?: Logprobs | null;
  }[];
  usage?: Usage | null;
  timings?: Timings;
}

export interface ChatCompletion {
  id: string;
  object: 'chat.completion';
  created: number;
  model: string;
  choices: {
    index: number;
    message: { role: 'assistant'; content: string | null; refusal: null; reasoning_content?: string | null; tool_calls?: ToolCall[] };
    finish_reason: FinishReason;
    logprobs: Logprobs | null;
  }[];
  usage: Usage;
  timings?: Timings;
}

/** How far the encoding of a message's picture, recording or video is, loading the encoder included. */
export interface MediaProgress {
  kind: 'picture' | 'recording' | 'video';
  done: number;
  total: number;
}

/** What `model.chat()` yields: the answer as it comes, and at the end how it went. */
export type ChatPart =
  | { type: 'text'; text: string }
  | { type: 'thinking'; text: string }
  | { type: 'tool_call'; call: ToolCall }
  | { type: 'done'; reason: FinishReason; usage: Usage; timings: Timings | undefined };

// The parts of OpenAI's chat completions that bezel speaks. The shapes are theirs, so that code and types written
// for that API fit; `timings` and `reasoning_content` are additions.

export type Role = 'system' | 'developer' | 'user' | 'assistant' | 'tool';

export interface TextPart {
  type: 'text';
  text: string;
}
export interface ToolCall {
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
}
export interface ChatMessage {
  role: Role;
  content?: string | TextPart[] | null;
  name?: string;
  reasoning_content?: string | null;
  tool_calls?: ToolCall[];
  tool_call_id?: string;
}
export interface Tool {
  type: 'function';
  function: { name: string; description?: string; parameters?: object; strict?: boolean | null };
}

export interface ChatRequest {
  messages: ChatMessage[];
  model?: string;
  stream?: boolean | null;
  stream_options?: { include_usage?: boolean } | null;
  tools?: Tool[];
  tool_choice?: 'none' | 'auto';
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

/** What `model.chat()` yields: the answer as it comes, and at the end how it went. */
export type ChatPart =
  | { type: 'text'; text: string }
  | { type: 'thinking'; text: string }
  | { type: 'tool_call'; call: ToolCall }
  | { type: 'done'; reason: FinishReason; usage: Usage; timings: Timings | undefined };

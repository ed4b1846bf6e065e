// A model for the Vercel AI SDK, as `bezel/ai-sdk`: generateText({ model: languageModel(model), ... }).

import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3Content,
  LanguageModelV3FilePart,
  LanguageModelV3FinishReason,
  LanguageModelV3Message,
  LanguageModelV3StreamPart,
  LanguageModelV3ToolResultOutput,
  LanguageModelV3Usage,
  SharedV3Warning,
} from '@ai-sdk/provider';
import type { Chat, ChatOptions } from './chat.js';
import { base64 } from './inline.js';
import type { ChatMessage, ChatPart, ContentPart, FinishReason, Tool, ToolCall, Usage } from './openai.js';
import { BezelError } from './protocol.js';

/** Pictures and sounds are passed on; a model that knows none of them says so. */
function filePart({ data, mediaType }: LanguageModelV3FilePart): ContentPart {
  const encoded = data instanceof Uint8Array ? base64(data) : data;
  if (mediaType.startsWith('image/')) {
    const type = mediaType === 'image/*' ? 'image/png' : mediaType;
    return { type: 'image_url', image_url: { url: encoded instanceof URL ? encoded.href : `data:${type};base64,${encoded}` } };
  }
  const format = { 'audio/wav': 'wav', 'audio/x-wav': 'wav', 'audio/mpeg': 'mp3', 'audio/mp3': 'mp3' }[mediaType] as 'wav' | 'mp3' | undefined;
  if (format && typeof encoded === 'string') return { type: 'input_audio', input_audio: { data: encoded, format } };
  throw new BezelError('unsupported', `A message holds a file of the type ${mediaType}: only pictures and sounds (WAV, MP3) can be given to a model.`);
}

function resultText(output: LanguageModelV3ToolResultOutput): string {
  switch (output.type) {
    case 'text':
    case 'error-text':
      return output.value;
    case 'execution-denied':
      return output.reason ?? 'The call was denied.';
    case 'json':
    case 'error-json':
      return JSON.stringify(output.value);
    case 'content':
      return output.value
        .map((part) => {
          if (part.type === 'text') return part.text;
          throw new BezelError('unsupported', `A tool's result holds ${part.type}: only text can be given to a model.`);
        })
        .join('\n');
  }
}

function messagesFrom(message: LanguageModelV3Message): ChatMessage[] {
  switch (message.role) {
    case 'system':
      return [{ role: 'system', content: message.content }];
    case 'user':
      return [{ role: 'user', content: message.content.map((part) => (part.type === 'text' ? { type: 'text', text: part.text } : filePart(part))) }];
    case 'assistant': {
      const texts = (type: 'text' | 'reasoning'): string => message.content.map((part) => (part.type === type ? part.text : '')).join('');
      const calls = message.content.flatMap((part): ToolCall[] =>
        part.type === 'tool-call' ? [{ id: part.toolCallId, type: 'function', function: { name: part.toolName, arguments: JSON.stringify(part.input) } }] : [],
      );
      const thought = texts('reasoning');
      return [{ role: 'assistant', content: texts('text'), ...(thought && { reasoning_content: thought }), ...(calls.length > 0 && { tool_calls: calls }) }];
    }
    case 'tool':
      return message.content.flatMap((part): ChatMessage[] =>
        part.type === 'tool-result' ? [{ role: 'tool', tool_call_id: part.toolCallId, name: part.toolName, content: resultText(part.output) }] : [],
      );
  }
}

interface Request {
  messages: ChatMessage[];
  options: ChatOptions;
  warnings: SharedV3Warning[];
}

function requestFrom(call: LanguageModelV3CallOptions): Request {
  const warnings: SharedV3Warning[] = [];
  const tools = (call.tools ?? []).flatMap((tool): Tool[] => {
    if (tool.type === 'function') {
      const { name, description, inputSchema } = tool;
      return [{ type: 'function', function: { name, parameters: inputSchema, ...(description !== undefined && { description }) } }];
    }
    warnings.push({ type: 'unsupported', feature: `the tool ${tool.id}`, details: 'It belongs to another provider.' });
    return [];
  });
  if (call.toolChoice?.type === 'required' || call.toolChoice?.type === 'tool') {
    warnings.push({ type: 'unsupported', feature: `toolChoice ${call.toolChoice.type}`, details: 'The model decides whether it calls a tool.' });
  }
  if (call.responseFormat?.type === 'json') {
    warnings.push({ type: 'unsupported', feature: 'responseFormat json', details: 'The model is not held to JSON: ask for it in the prompt.' });
  }
  const options: ChatOptions = {
    ...(call.maxOutputTokens !== undefined && { max_tokens: call.maxOutputTokens }),
    ...(call.temperature !== undefined && { temperature: call.temperature }),
    ...(call.topP !== undefined && { top_p: call.topP }),
    ...(call.topK !== undefined && { top_k: call.topK }),
    ...(call.presencePenalty !== undefined && { presence_penalty: call.presencePenalty }),
    ...(call.frequencyPenalty !== undefined && { frequency_penalty: call.frequencyPenalty }),
    ...(call.seed !== undefined && { seed: call.seed }),
    ...(call.stopSequences?.length && { stop: call.stopSequences }),
    ...(tools.length > 0 && { tools }),
    ...(call.toolChoice?.type === 'none' && { tool_choice: 'none' }),
    ...(call.providerOptions?.bezel as ChatOptions | undefined),
  };
  return { messages: call.prompt.flatMap(messagesFrom), options, warnings };
}

const finishReasons: Record<FinishReason, LanguageModelV3FinishReason['unified']> = {
  stop: 'stop',
  length: 'length',
  tool_calls: 'tool-calls',
  function_call: 'tool-calls',
  content_filter: 'content-filter',
};

function usageFrom({ prompt_tokens: prompt, completion_tokens: completion, prompt_tokens_details: details }: Usage): LanguageModelV3Usage {
  const cached = details?.cached_tokens ?? 0;
  return {
    inputTokens: { total: prompt, noCache: prompt - cached, cacheRead: cached, cacheWrite: undefined },
    outputTokens: { total: completion, text: undefined, reasoning: undefined },
  };
}

type Finish = Extract<LanguageModelV3StreamPart, { type: 'finish' }>;
function finishFrom({ reason, usage, timings }: Extract<ChatPart, { type: 'done' }>): Finish {
  return {
    type: 'finish',
    finishReason: { unified: finishReasons[reason], raw: reason },
    usage: usageFrom(usage),
    ...(timings && { providerMetadata: { bezel: { timings: { ...timings } } } }),
  };
}

const callFrom = ({ id, function: { name, arguments: input } }: ToolCall): Extract<LanguageModelV3Content, { type: 'tool-call' }> => ({
  type: 'tool-call',
  toolCallId: id,
  toolName: name,
  input,
});

/** The answer in the SDK's parts: pieces of one kind in a row become one block with a beginning and an end. */
async function* streamParts(parts: AsyncIterable<ChatPart>): AsyncGenerator<LanguageModelV3StreamPart, void> {
  let open: { kind: 'text' | 'reasoning'; id: string } | undefined;
  let blocks = 0;
  for await (const part of parts) {
    const kind = part.type === 'text' ? 'text' : part.type === 'thinking' ? 'reasoning' : undefined;
    if (open && open.kind !== kind) {
      yield { type: `${open.kind}-end`, id: open.id };
      open = undefined;
    }
    if (part.type === 'tool_call') yield callFrom(part.call);
    else if (part.type === 'done') yield finishFrom(part);
    else if (kind) {
      if (!open) {
        open = { kind, id: String(blocks++) };
        yield { type: `${kind}-start`, id: open.id };
      }
      yield { type: `${kind}-delta`, id: open.id, delta: part.text };
    }
  }
}

export interface LanguageModelOptions {
  /** The name under which the SDK reports it. */
  id?: string;
}

/**
 * Makes a loaded model (or a `RemoteModel`) one of the AI SDK's. Further options of `model.chat` are given as
 * `providerOptions: { bezel: { thinking: true } }`.
 */
export function languageModel(model: { chat: Chat }, { id = 'gemma4' }: LanguageModelOptions = {}): LanguageModelV3 {
  const run = (call: LanguageModelV3CallOptions, signal: AbortSignal | undefined) => {
    const { messages, options, warnings } = requestFrom(call);
    return { warnings, parts: streamParts(model.chat(messages, { ...options, signal })) };
  };
  return {
    specificationVersion: 'v3',
    provider: 'bezel',
    modelId: id,
    supportedUrls: {},

    async doGenerate(call) {
      const { parts, warnings } = run(call, call.abortSignal);
      const content: LanguageModelV3Content[] = [];
      let finish: Finish | undefined;
      try {
        for await (const part of parts) {
          if (part.type === 'text-start') content.push({ type: 'text', text: '' });
          else if (part.type === 'reasoning-start') content.push({ type: 'reasoning', text: '' });
          else if (part.type === 'text-delta' || part.type === 'reasoning-delta') (content.at(-1) as { text: string }).text += part.delta;
          else if (part.type === 'tool-call') content.push(part);
          else if (part.type === 'finish') finish = part;
        }
      } finally {
        call.abortSignal?.throwIfAborted();
      }
      const { finishReason, usage, providerMetadata } = finish!; // without one, the iteration has thrown
      return { content, finishReason, usage, warnings, ...(providerMetadata && { providerMetadata }) };
    },

    async doStream(call) {
      const left = new AbortController();
      const signal = call.abortSignal ? AbortSignal.any([call.abortSignal, left.signal]) : left.signal;
      const { parts, warnings } = run(call, signal);
      const stream = new ReadableStream<LanguageModelV3StreamPart>({
        start: (controller) => controller.enqueue({ type: 'stream-start', warnings }),
        pull: async (controller) => {
          try {
            const { done, value } = await parts.next();
            call.abortSignal?.throwIfAborted();
            if (done) controller.close();
            else controller.enqueue(value);
          } catch (error) {
            controller.error(call.abortSignal?.aborted ? call.abortSignal.reason : error);
          }
        },
        cancel: () => left.abort(),
      });
      return { stream };
    },
  };
}

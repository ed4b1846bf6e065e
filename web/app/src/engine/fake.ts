// A scripted engine for tests of the interface, built with --mode test. What it answers depends on the question.

import type { ChatMessage, ChatOptions, ChatPart, DeviceInfo, Fit, JobOptions, LoadOptions, ModelInfo, ModelSource, StoredModel } from 'bezel';
import { BezelError } from 'bezel';
import type { EngineLike, ModelLike, StoreLike } from './like';

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export const hostile = [
  '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>',
  '[click](javascript:window.hacked=1) and [data](data:text/html,<script>window.hacked=1</script>) and [fine](https://example.org/)',
  '![pixel](https://example.org/pixel.png)',
  '<iframe src="https://example.org"></iframe>',
  '$\\href{javascript:window.hacked=1}{x}$ and $\\htmlData{a=b}{y}$',
  '```html\n<script>window.hacked=1</script>\n```',
  '<a href="javascript:window.hacked=1" onclick="window.hacked=1">link</a>',
].join('\n\n');

const sample = `Light bends when it enters a raindrop, **reflects** at its back, and bends again on the way out.

1. Each colour bends by its own angle, because the index of refraction depends on the wavelength.
2. So every drop sends you *one* colour, and the sky sorts them by height.

The angle follows from Snell's law, $n_1 \\sin\\theta_1 = n_2 \\sin\\theta_2$, and the rainbow stands where the deflection is stationary:

$$\\frac{\\mathrm{d}}{\\mathrm{d}\\theta}\\left(\\pi + 2\\theta - 4\\arcsin\\frac{\\sin\\theta}{n}\\right) = 0$$

\`\`\`python
import math

def rainbow_angle(n: float) -> float:
    """The angle of the primary bow, in degrees."""
    theta = math.acos(math.sqrt((n * n - 1) / 3))
    return math.degrees(4 * math.asin(math.sin(theta) / n) - 2 * theta)

print(rainbow_angle(1.333))  # 42.0
\`\`\`

| colour | index | angle |
|---|---:|---:|
| red | 1.331 | 42.4° |
| violet | 1.343 | 40.7° |
`;

function answerTo(question: string, messages: ChatMessage[]): string {
  if (question.includes('silent')) return '';
  if (question.includes('hostile')) return hostile;
  if (question.includes('rainbow')) return sample;
  if (question.includes('long')) return Array.from({ length: 400 }, (_, i) => `word${i}`).join(' ');
  const users = messages.filter(({ role }) => role === 'user').length;
  const system = messages.find(({ role }) => role === 'system')?.content;
  return `Answer ${users} to “${question}”.${system ? ` I was told: ${String(system)}` : ''}`;
}

class FakeModel implements ModelLike {
  readonly info: ModelInfo = {
    model: 1,
    vocabulary: 32768,
    context: 4096,
    layers: 12,
    width: 256,
    batch: 64,
    parameters: 12_400_000,
    weightBytes: 9_200_000,
    bytesPerToken: 6_100_000,
    sees: true,
    hears: true,
  };

  async *chat(messages: ChatMessage[], { signal, thinking }: ChatOptions = {}): AsyncIterable<ChatPart> {
    const asked = messages.findLast(({ role }) => role === 'user')?.content ?? '';
    const question = typeof asked === 'string' ? asked : asked.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join(' ');
    if (question.includes('fail')) throw new BezelError('memory', 'The GPU has no memory left. Close other tabs, or choose a smaller model.');
    const rest = messages.at(-1)?.role === 'assistant';
    const words = (rest ? ' and the rest of it.' : answerTo(question, messages)).match(/\s*\S+\s*?/g) ?? [];
    const began = performance.now();
    if (thinking) {
      for (const word of ['The person ', 'asks a ', 'question. ', 'I should ', 'answer it.']) {
        yield { type: 'thinking', text: word };
        await pause(20);
      }
    }
    let tokens = 0;
    for (const word of words) {
      if (signal?.aborted) break;
      await pause(8 + 6 * Math.sin(tokens / 5));
      tokens++;
      yield { type: 'text', text: word };
    }
    const seconds = (performance.now() - began) / 1000;
    yield {
      type: 'done',
      reason: 'stop',
      usage: { prompt_tokens: 42, completion_tokens: tokens, total_tokens: 42 + tokens, prompt_tokens_details: { cached_tokens: 17 } },
      timings: { time_to_first_token_ms: 84, prefill_tokens_per_second: 1820, decode_tokens_per_second: tokens / seconds },
    };
  }
  async saveState(): Promise<void> {}
  async restoreState(): Promise<number> {
    return 0;
  }
  async dropState(): Promise<void> {}
  async unload(): Promise<void> {}
}

const unused = { digest: '', added: 0, lastUsed: 0 };

class FakeStore implements StoreLike {
  private readonly models = new Map<string, StoredModel>();

  async list(): Promise<StoredModel[]> {
    return [...this.models.values()];
  }
  async download(request: { url: string; name: string }, { onProgress, signal }: JobOptions = {}): Promise<StoredModel> {
    const key = `url-${request.url}`;
    const model = this.models.get(key) ?? { ...unused, ...request, key, size: 3_340_000_000, done: 0, state: 'partial' as const };
    this.models.set(key, model);
    const step = model.size / 60;
    while (model.done < model.size) {
      if (signal?.aborted) throw new BezelError('cancelled', 'stopped');
      model.done = Math.min(model.size, model.done + step);
      onProgress?.({ state: 'downloading', done: model.done, total: model.size, bytesPerSecond: 41e6, secondsLeft: (model.size - model.done) / 41e6 });
      await pause(50);
    }
    model.state = 'ready';
    return model;
  }
  async importFile(file: File): Promise<StoredModel> {
    const model: StoredModel = { ...unused, key: `file-${file.name}`, name: file.name, url: '', size: file.size, done: file.size, state: 'ready' };
    this.models.set(model.key, model);
    return model;
  }
  async delete(key: string): Promise<void> {
    this.models.delete(key);
  }
  async quota(): Promise<{ usage: number; quota: number; persisted: boolean }> {
    return { usage: 120_000_000, quota: 60_000_000_000, persisted: false };
  }
}

class FakeEngine implements EngineLike {
  readonly store = new FakeStore();
  readonly deviceInfo: DeviceInfo | undefined = navigator.gpu && {
    name: 'Imaginary GPU 3000',
    vendor: 'example',
    backend: 'WebGPU',
    software: false,
    maxBuffer: 4_294_967_296,
    maxBinding: 2_147_483_644,
    maxStorageBindings: 10,
    maxInvocations: 1024,
    maxWorkgroupMemory: 32768,
    f16: true,
    subgroups: true,
    timestamps: false,
    subgroupMatrix: false,
    integerDots: false,
  };
  readonly cpuReason = navigator.gpu ? undefined : 'This browser has no WebGPU.';

  async load(source: ModelSource, { onProgress, signal }: LoadOptions = {}): Promise<ModelLike> {
    if (typeof source === 'string' && source.includes('broken')) throw new BezelError('invalid', 'The file is no GGUF file: it begins with "<htm".');
    for (let done = 1; done <= 5; done++) {
      await pause(15);
      if (signal?.aborted) throw new BezelError('cancelled', 'stopped');
      onProgress?.(done * 2_000_000, 10_000_000);
    }
    return new FakeModel();
  }
  async probe(source: ModelSource): Promise<Fit> {
    if (typeof source === 'string' && source.includes('missing')) throw new BezelError('not-found', `${source} does not exist (404).`);
    const large = typeof source === 'string' && source.includes('31b');
    return {
      verdict: large ? 'maybe' : 'yes',
      reasons: large ? ['It needs 19.2 GB of GPU memory; this device probably has about 12.0 GB.'] : [],
      download: 3_340_000_000,
      gpuBytes: 2_900_000_000,
      gpuGuess: 12e9,
      settings: { context: 8192, kv: 'f32' },
      storage: { needed: 3_340_000_000, free: 59e9 },
    };
  }
  async memory(): Promise<{ gpu: number; heap: number }> {
    return { gpu: 21_400_000, heap: 9_400_000 };
  }
  close(): void {}
}

export async function startEngine(): Promise<EngineLike> {
  await pause(30);
  return new FakeEngine();
}

// How fast it goes, and on what.

import { useEffect } from 'react';
import { useApp, view } from '../app_context';
import { bytes, count, milliseconds, rate } from '../state/format';
import type { Sample } from '../state/perf';
import { nameOf } from '../state/runtime';
import { useStore } from '../state/store';
import { Icon } from '../ui/icons';

const width = 280;
const height = 90;

function Chart({ samples }: { samples: Sample[] }) {
  if (samples.length < 2) return <p className="muted chart-empty">The speed over time appears with the next answer.</p>;
  const last = samples.at(-1)!.at;
  const most = Math.max(...samples.map((sample) => sample.rate)) * 1.15;
  const points = samples.map(({ at, rate: r }) => `${((at / last) * width).toFixed(1)},${(height - (r / most) * height).toFixed(1)}`);
  const mean = samples.reduce((sum, sample) => sum + sample.rate, 0) / samples.length;
  return (
    <figure className="chart">
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={`Tokens per second over ${Math.round(last)} seconds, ${rate(mean)} on average`}>
        <polygon points={`${points[0]!.split(',')[0]},${height} ${points.join(' ')} ${width},${height}`} />
        <polyline points={points.join(' ')} />
      </svg>
      <figcaption className="muted">
        <span>0 s</span>
        <span>peak {rate(most / 1.15)} tok/s</span>
        <span>{Math.round(last)} s</span>
      </figcaption>
    </figure>
  );
}

function Facts({ rows }: { rows: [string, string | undefined][] }) {
  return (
    <dl className="facts">
      {rows.map(([name, value]) =>
        value === undefined ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}

export function PerfPanel() {
  const { perf, runtime } = useApp();
  const { answering, rate: now, samples, answers, memory } = useStore(perf.store, (state) => state);
  const { device, model, choice } = useStore(runtime.store, (state) => state);
  const last = answers.at(-1);
  useEffect(() => void runtime.measure(), [runtime]);
  const speed = answering ? now : (last?.decodeRate ?? 0);
  return (
    <aside className="perf" aria-label="Performance">
      <header>
        <h2>Performance</h2>
        <button type="button" className="quiet" aria-label="Close" onClick={() => view.set({ perf: false })}>
          <Icon name="close" />
        </button>
      </header>
      <p className="figure">
        <strong>{speed > 0 ? rate(speed) : '–'}</strong> <span className="muted">tokens per second</span>
      </p>
      <Chart samples={samples} />
      {last && (
        <>
          <h3>Last answer</h3>
          <Facts
            rows={[
              ['First token after', milliseconds(last.firstTokenMs)],
              ['Reading the prompt', `${rate(last.prefillRate)} tok/s`],
              ['Writing', `${rate(last.decodeRate)} tok/s`],
              ['Prompt', `${last.promptTokens} tokens, ${last.cachedTokens} known already`],
              ['Answer', `${last.tokens} tokens`],
            ]}
          />
        </>
      )}
      <h3>Memory</h3>
      <Facts rows={[['GPU', memory ? bytes(memory.gpu) : '–'], ['Engine', memory ? bytes(memory.heap) : '–']]} />
      <h3>Model</h3>
      <Facts
        rows={[
          ['Name', nameOf(choice)],
          ['Parameters', model ? count(model.parameters) : undefined],
          ['Weights', model ? bytes(model.weightBytes) : undefined],
          ['Layers', model ? `${model.layers} of width ${model.width}` : undefined],
          ['Longest context', model ? `${count(model.context)} tokens` : undefined],
        ]}
      />
      <h3>Computes on</h3>
      <Facts
        rows={
          device
            ? [
                ['Adapter', device.name || device.vendor],
                ['Through', device.backend],
                ['Largest buffer', bytes(device.maxBuffer)],
                ['Half precision', device.f16 ? 'yes' : 'no'],
                ['Subgroups', device.subgroups ? 'yes' : 'no'],
              ]
            : [['Adapter', 'the processor']]
        }
      />
    </aside>
  );
}

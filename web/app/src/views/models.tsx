// The model manager: what is on this device, what Ollama has, and how to add more.

import { useEffect } from 'react';
import { useApp } from '../app_context';
import { bytes } from '../state/format';
import { embedded, hintsOf } from '../state/runtime';
import { useStore } from '../state/store';
import { Dialog } from '../ui/dialog';
import { AddModel, FitAnswer } from './model_add';
import { JobRow, ModelRow } from './model_rows';

function Quota() {
  const { models } = useApp();
  const quota = useStore(models.store, (state) => state.quota);
  if (!quota || quota.quota === 0) return null;
  return (
    <div className="quota">
      <progress max={quota.quota} value={quota.usage} aria-label="Storage used" />
      <p className="muted">
        {bytes(quota.usage)} used, {bytes(Math.max(0, quota.quota - quota.usage))} free
        {!quota.persisted && '. The browser may delete it when space runs out; installing the app prevents that'}.
      </p>
    </div>
  );
}

function OnDevice() {
  const { models } = useApp();
  const { stored, jobs, storeError } = useStore(models.store, (state) => state);
  const waiting = stored.filter(({ state, url }) => state === 'partial' && !jobs[url]);
  return (
    <section>
      <h3>On this device</h3>
      <ul className="models">
        <ModelRow choice={embedded} detail="Comes with the app, works offline. A toy for small talk, sums, words and little stories." />
        {stored
          .filter(({ state }) => state === 'ready')
          .map((model) => (
            <ModelRow key={model.key} choice={{ kind: 'stored', key: model.key, name: model.name, ...hintsOf(model.key) }} detail={bytes(model.size)} onDelete={() => void models.remove(model)} />
          ))}
        {Object.entries(jobs).map(([key, job]) => (
          <JobRow key={key} job={job} onPause={() => models.pause(key)} onResume={() => void models.resume(key)} onDelete={() => void models.cancel(key)} />
        ))}
        {waiting.map((model) => (
          <JobRow
            key={model.key}
            job={{ name: model.name, state: 'paused', error: null, progress: { state: 'waiting', done: model.done, total: model.size, bytesPerSecond: 0, secondsLeft: undefined } }}
            {...(model.url !== '' && { onResume: () => void models.resume(model.url, model) })}
            onDelete={() => void models.remove(model)}
          />
        ))}
      </ul>
      {storeError && <p className="failed" role="alert">{storeError}</p>}
      <Quota />
    </section>
  );
}

function Served() {
  const { models } = useApp();
  const served = useStore(models.store, (state) => state.served);
  return (
    <section>
      <h3>In Ollama</h3>
      {served === null && (
        <p className="muted">
          Start <code>bezel serve</code> on this computer and open the app from its address to see the models that Ollama has.
        </p>
      )}
      {served?.length === 0 && (
        <p className="muted">
          Ollama has no model that bezel can run. <code>ollama pull gemma4</code> gets one.
        </p>
      )}
      <ul className="models">
        {served?.map((model) => (
          <ModelRow
            key={model.name}
            choice={{ kind: 'served', name: model.name }}
            detail={[model.hints?.parameterSize, model.quantization, model.size && bytes(model.size)].filter(Boolean).join(', ')}
          />
        ))}
      </ul>
    </section>
  );
}

export function ModelsDialog({ onClose }: { onClose: () => void }) {
  const { models } = useApp();
  useEffect(() => {
    void models.refresh();
    return () => models.forgetProbe();
  }, [models]);
  return (
    <Dialog title="Models" onClose={onClose}>
      <FitAnswer onUsed={onClose} />
      <OnDevice />
      <Served />
      <AddModel />
    </Dialog>
  );
}

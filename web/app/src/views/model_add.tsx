// A model from an address or a file: will it fit, and then use it or keep it.

import { useState } from 'react';
import { useApp } from '../app_context';
import { bytes, count } from '../state/format';
import { nameOf } from '../state/runtime';
import { useStore } from '../state/store';
import { Icon } from '../ui/icons';

export function AddModel() {
  const { models } = useApp();
  const [url, setUrl] = useState('');
  const [problem, setProblem] = useState('');
  const check = (): void => {
    let address: URL;
    try {
      address = new URL(url.trim(), document.baseURI);
    } catch {
      setProblem('This is no address. It should look like https://example.org/model.gguf');
      return;
    }
    setProblem('');
    void models.check({ kind: 'url', url: address.href });
  };
  return (
    <section>
      <h3>Add a model</h3>
      <form
        className="add"
        onSubmit={(event) => {
          event.preventDefault();
          check();
        }}
      >
        <label className="search">
          <Icon name="link" />
          <input type="url" required placeholder="https://…/model.gguf" aria-label="Address of a GGUF file" aria-describedby="add-problem" value={url} onChange={(event) => setUrl(event.target.value)} />
        </label>
        <button type="submit" className="small">
          Check
        </button>
        <label className="small button">
          <Icon name="file" /> Choose a file
          <input
            type="file"
            accept=".gguf"
            className="visually-hidden"
            onChange={(event) => {
              const file = event.target.files?.[0];
              if (file) void models.check({ kind: 'file', file });
              event.target.value = '';
            }}
          />
        </label>
      </form>
      <p id="add-problem" className="failed" role="alert">
        {problem}
      </p>
    </section>
  );
}

const verdicts = { yes: 'It fits.', maybe: 'It may not fit.', no: 'It does not fit.' };

export function FitAnswer({ onUsed }: { onUsed: () => void }) {
  const { models } = useApp();
  const probe = useStore(models.store, (state) => state.probe);
  if (!probe) return null;
  const { candidate, fit, error } = probe;
  const full = fit?.storage !== undefined && fit.storage.free < fit.storage.needed;
  return (
    <section className="fit" aria-live="polite">
      <h3>{nameOf(candidate)}</h3>
      {!fit && !error && <p className="muted pulse">Reading its header…</p>}
      {error && <p className="failed">{error}</p>}
      {fit && (
        <>
          <p className={`verdict ${fit.verdict}`}>{verdicts[fit.verdict]}</p>
          <ul>
            {fit.reasons.map((reason) => (
              <li key={reason}>{reason}</li>
            ))}
            <li>
              {bytes(fit.download)} to load, {bytes(fit.gpuBytes)} of graphics memory with a context of {count(fit.settings.context)} tokens.
            </li>
          </ul>
        </>
      )}
      <div className="actions">
        <button type="button" className="small" onClick={() => models.forgetProbe()}>
          Close
        </button>
        {fit && models.canKeep(candidate) && (
          <button type="button" className="small" disabled={full} title={full ? 'There is not enough storage' : undefined} onClick={() => void models.keep(candidate)}>
            <Icon name="download" /> {candidate.kind === 'file' ? 'Keep a copy' : 'Download'}
          </button>
        )}
        {fit && (
          <button
            type="button"
            className="small primary"
            disabled={fit.verdict === 'no'}
            onClick={() => {
              models.use(candidate);
              onUsed();
            }}
          >
            Use now
          </button>
        )}
      </div>
    </section>
  );
}

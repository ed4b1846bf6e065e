// How answers are made, and how the app looks.

import { useId } from 'react';
import { defaults, imageBudgets, limits, settings, type Theme } from '../state/settings';
import { useStore } from '../state/store';
import { Dialog } from '../ui/dialog';

function Slider({ name, label, help }: { name: keyof typeof limits; label: string; help: string }) {
  const value = useStore(settings, (state) => state[name]);
  const id = useId();
  const { min, max, step } = limits[name];
  return (
    <div className="field">
      <label htmlFor={id}>
        {label} <output>{value}</output>
      </label>
      <input id={id} type="range" min={min} max={max} step={step} value={value} aria-describedby={`${id}-help`} onChange={(event) => settings.set({ [name]: Number(event.target.value) })} />
      <p id={`${id}-help`} className="muted">
        {help}
      </p>
    </div>
  );
}

const themes: [Theme, string][] = [
  ['system', 'As the device'],
  ['light', 'Light'],
  ['dark', 'Dark'],
];

export function SettingsDialog({ onClose }: { onClose: () => void }) {
  const { theme, system, thinking, imageTokens } = useStore(settings, (state) => state);
  const { theme: _, ...answerDefaults } = defaults;
  return (
    <Dialog title="Settings" onClose={onClose}>
      <fieldset className="segments">
        <legend>Appearance</legend>
        {themes.map(([value, label]) => (
          <label key={value}>
            <input type="radio" name="theme" checked={theme === value} onChange={() => settings.set({ theme: value })} />
            <span>{label}</span>
          </label>
        ))}
      </fieldset>
      <div className="field">
        <label htmlFor="system">System prompt</label>
        <textarea
          id="system"
          rows={4}
          placeholder="For example: Answer briefly, and in German."
          value={system}
          aria-describedby="system-help"
          onChange={(event) => settings.set({ system: event.target.value })}
        />
        <p id="system-help" className="muted">
          What the model is told before every conversation.
        </p>
      </div>
      <label className="switch">
        <input type="checkbox" role="switch" checked={thinking} onChange={(event) => settings.set({ thinking: event.target.checked })} />
        <span>
          Think before answering
          <span className="muted">Better for hard questions, and slower.</span>
        </span>
      </label>
      <div>
        <fieldset className="segments" aria-describedby="image-tokens-help">
          <legend>Tokens for a picture</legend>
          {imageBudgets.map((budget) => (
            <label key={budget}>
              <input type="radio" name="image-tokens" checked={imageTokens === budget} onChange={() => settings.set({ imageTokens: budget })} />
              <span>{budget === 0 ? 'Auto' : budget}</span>
            </label>
          ))}
        </fieldset>
        <p id="image-tokens-help" className="muted below">
          More tokens show more detail, and take longer. Auto is what the model was made for.
        </p>
      </div>
      <Slider name="temperature" label="Temperature" help="Low is predictable, high is inventive. 0 always takes the likeliest word." />
      <Slider name="topP" label="Top P" help="Only the likeliest words that together have this probability." />
      <Slider name="topK" label="Top K" help="Only this many of the likeliest words." />
      <Slider name="maxTokens" label="Longest answer" help="In tokens; a word has about one and a half." />
      <div className="actions">
        <p className="muted small-print">Where these are at their defaults, the model’s own recommendation counts.</p>
        <button type="button" className="small" onClick={() => settings.set(answerDefaults)}>
          Back to the defaults
        </button>
      </div>
    </Dialog>
  );
}

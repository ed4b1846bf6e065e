// How pictures, recordings and videos come into a message: chosen, dropped, pasted, taken, spoken.

import { useEffect, useRef, useState } from 'react';
import { useApp } from '../app_context';
import { accepted, addFiles, called, canTake, pending, type AttachmentKind } from '../state/attachments';
import { nameOf } from '../state/runtime';
import { useStore } from '../state/store';
import { Icon } from '../ui/icons';
import { Camera } from './camera';
import { Microphone } from './microphone';

function ChooseButton() {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" className="round" aria-label="Attach pictures, recordings or videos" title="Attach" onClick={() => input.current!.click()}>
        <Icon name="plus" />
      </button>
      <input
        ref={input}
        type="file"
        id="attach"
        hidden
        multiple
        accept={accepted}
        onChange={(event) => {
          addFiles(event.target.files ?? []);
          event.target.value = ''; // the same file may be chosen again
        }}
      />
    </>
  );
}

/** For models with eyes or ears; while none is loaded, the buttons stay away. */
export function AttachTools() {
  const { runtime } = useApp();
  const model = useStore(runtime.store, (state) => state.model);
  if (!model?.sees && !model?.hears) return null;
  return (
    <>
      <ChooseButton />
      {model.sees && <Camera />}
      {model.hears && <Microphone />}
    </>
  );
}

/** Said when something is attached that the model cannot take. */
export function SenseNotice() {
  const { runtime } = useApp();
  const { model, choice } = useStore(runtime.store, (state) => state);
  const items = useStore(pending, (state) => state.items);
  if (!model) return null;
  const kinds = [...new Set(items.map(({ kind }) => kind))].filter((kind) => !canTake(kind, model));
  if (kinds.length === 0) return null;
  const verb = (kind: AttachmentKind): string => (kind === 'audio' ? 'hear' : 'see');
  const verbs = [...new Set(kinds.map(verb))].join(' or ');
  return (
    <p className="sense-notice" role="status">
      <Icon name="warning" />
      <span>
        {nameOf(choice)} cannot {verbs}. The {kinds.map((kind) => called[kind]).join(' and the ')} will be left out; choose another model, or remove it.
      </span>
    </p>
  );
}

const hasFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes('Files') ?? false;

/** Files may be dropped anywhere on the conversation, and pasted. */
export function DropZone() {
  const [over, setOver] = useState(false);
  useEffect(() => {
    const inDialog = (): boolean => document.querySelector('dialog[open]') !== null;
    const onOver = (event: DragEvent): void => {
      if (!hasFiles(event) || inDialog()) return;
      event.preventDefault();
      event.dataTransfer!.dropEffect = 'copy';
      setOver(true);
    };
    const onLeave = (event: DragEvent): void => {
      if (event.relatedTarget === null) setOver(false);
    };
    const onDrop = (event: DragEvent): void => {
      setOver(false);
      if (!hasFiles(event) || inDialog()) return;
      event.preventDefault();
      addFiles(event.dataTransfer!.files);
      document.querySelector<HTMLElement>('#message')?.focus();
    };
    const onPaste = (event: ClipboardEvent): void => {
      const files = [...(event.clipboardData?.files ?? [])];
      if (files.length === 0 || inDialog()) return;
      // Office programs put a picture of copied text beside the text: that was not meant.
      if (event.clipboardData!.types.includes('text/plain')) return;
      event.preventDefault();
      addFiles(files);
    };
    addEventListener('dragover', onOver);
    addEventListener('dragleave', onLeave);
    addEventListener('drop', onDrop);
    addEventListener('paste', onPaste);
    return () => {
      removeEventListener('dragover', onOver);
      removeEventListener('dragleave', onLeave);
      removeEventListener('drop', onDrop);
      removeEventListener('paste', onPaste);
    };
  }, []);
  if (!over) return null;
  return (
    <div className="drop-zone" aria-hidden="true">
      <p>
        <Icon name="plus" />
        Drop pictures, recordings or videos
      </p>
    </div>
  );
}

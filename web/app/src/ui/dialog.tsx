// A modal sheet: the browser's own dialog, which keeps the focus inside and closes on Esc.

import { useEffect, useId, useRef, type ReactNode } from 'react';
import { Icon } from './icons';

export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ReactNode }) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = element.current!;
    if (!dialog.open) dialog.showModal();
    dialog.querySelector('h2')?.focus();
  }, []);
  return (
    <dialog
      ref={element}
      className="sheet"
      aria-labelledby={heading}
      onClose={onClose}
      onClick={(event) => {
        if (event.target === element.current) element.current.close();
      }}
    >
      <div className="sheet-body">
        <header>
          <h2 id={heading} tabIndex={-1}>{title}</h2>
          <button type="button" className="quiet" aria-label="Close" title="Close" onClick={() => element.current?.close()}>
            <Icon name="close" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

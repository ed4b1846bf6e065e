// Short messages at the bottom, read out by screen readers.

import { Store, useStore } from '../state/store';

interface Toast {
  text: string;
  action?: { label: string; run: () => void };
}

const current = new Store<{ toast: Toast | null }>({ toast: null });
let timer: ReturnType<typeof setTimeout> | undefined;

export function toast(text: string, action?: Toast['action']): void {
  current.set({ toast: action ? { text, action } : { text } });
  clearTimeout(timer);
  timer = setTimeout(() => current.set({ toast: null }), action ? 10_000 : 3000);
}

export function Toasts() {
  const shown = useStore(current, (state) => state.toast);
  return (
    <div className="toasts" role="status">
      {shown && (
        <div className="toast">
          <span>{shown.text}</span>
          {shown.action && (
            <button
              type="button"
              onClick={() => {
                shown.action!.run();
                current.set({ toast: null });
              }}
            >
              {shown.action.label}
            </button>
          )}
        </div>
      )}
    </div>
  );
}

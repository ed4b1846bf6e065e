// The service worker keeps the app, the engine and the embedded model for use without a network. A new version waits
// until the person agrees: reloading in the middle of an answer would lose it.

import { registerSW } from 'virtual:pwa-register';
import { toast } from './ui/toast';

export function keepOffline(): void {
  const update = registerSW({
    onNeedRefresh: () => toast('A new version of bezel is here.', { label: 'Reload', run: () => void update(true) }),
  });
}

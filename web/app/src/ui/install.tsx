// Offers to install the app where the browser does.

import { Store, useStore } from '../state/store';
import { Icon } from './icons';

interface InstallEvent extends Event {
  prompt(): Promise<unknown>;
}

const offer = new Store<{ event: InstallEvent | null }>({ event: null });
addEventListener('beforeinstallprompt', (event) => {
  event.preventDefault();
  offer.set({ event: event as InstallEvent });
});
addEventListener('appinstalled', () => offer.set({ event: null }));

export function InstallButton() {
  const event = useStore(offer, (state) => state.event);
  if (!event) return null;
  const install = (): void => {
    void event.prompt();
    offer.set({ event: null });
  };
  return (
    <button type="button" className="row" onClick={install}>
      <Icon name="download" /> Install the app
    </button>
  );
}

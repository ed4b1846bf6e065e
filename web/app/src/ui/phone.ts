import { useSyncExternalStore } from 'react';

const query = matchMedia('(max-width: 760px)');
const subscribe = (listener: () => void): (() => void) => {
  query.addEventListener('change', listener);
  return () => query.removeEventListener('change', listener);
};
/** Is the window as narrow as a phone's? */
export const usePhone = (): boolean => useSyncExternalStore(subscribe, () => query.matches);

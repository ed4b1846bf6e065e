// A value that components watch.

import { useSyncExternalStore } from 'react';

export class Store<T extends object> {
  private readonly listeners = new Set<() => void>();

  constructor(private value: T) {}

  readonly get = (): T => this.value;
  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
  set(change: Partial<T>): void {
    this.value = { ...this.value, ...change };
    for (const listener of [...this.listeners]) listener();
  }
}

/** `select` must give the same object as long as nothing changed. */
export function useStore<T extends object, S>(store: Store<T>, select: (value: T) => S): S {
  return useSyncExternalStore(store.subscribe, () => select(store.get()));
}

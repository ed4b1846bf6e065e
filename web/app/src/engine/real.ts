import { createEngine } from 'bezel';
import type { EngineLike } from './like';

export const startEngine = (): Promise<EngineLike> => createEngine();

// Numbers and times as people read them.

export function bytes(n: number): string {
  if (n >= 1e9) return `${(n / 1e9).toFixed(1)} GB`;
  if (n >= 1e6) return `${(n / 1e6).toFixed(n >= 1e8 ? 0 : 1)} MB`;
  return `${Math.ceil(n / 1e3)} kB`;
}

export function count(n: number): string {
  if (n >= 1e9) return `${(n / 1e9).toFixed(1)} B`;
  if (n >= 1e6) return `${(n / 1e6).toFixed(n >= 1e8 ? 0 : 1)} M`;
  return n.toLocaleString('en');
}

export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return 'unknown';
  if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
}

/** 1:05 */
export const clock = (seconds: number): string => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`;

export function rate(tokensPerSecond: number): string {
  return tokensPerSecond >= 100 ? tokensPerSecond.toFixed(0) : tokensPerSecond.toFixed(1);
}

export function milliseconds(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** The heading under which a conversation of that time is listed. */
export function period(time: number, now = Date.now()): string {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  if (time >= midnight) return 'Today';
  const day = 86_400_000;
  if (time >= midnight - day) return 'Yesterday';
  if (time >= midnight - 7 * day) return 'This week';
  return time >= midnight - 30 * day ? 'This month' : 'Earlier';
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

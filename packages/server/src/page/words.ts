// Numbers and times as people read them. Figures keep their width, so that nothing jumps while it counts.

import type { Usage } from '@drover/protocol/messages';

/** 0:07, 12:30, 1:02:03 */
export function pageClockTime(ms: number): string {
  const all = Math.max(0, Math.floor(ms / 1_000));
  const [hours, minutes, seconds] = [Math.floor(all / 3_600), Math.floor(all / 60) % 60, all % 60];
  const tail = `${hours > 0 ? pageTwoDigits(minutes) : minutes}:${pageTwoDigits(seconds)}`;
  return hours > 0 ? `${hours}:${tail}` : tail;
}

/** 340 ms, 4.2 s, 3 m 20 s */
export function pageDuration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} m ${pageTwoDigits(seconds % 60)} s`;
  return `${Math.floor(seconds / 3_600)} h ${pageTwoDigits(Math.floor(seconds / 60) % 60)} m`;
}

/** The estimate of the time left. Empty below a second, when the last task lands. */
export function timeLeft(ms: number | undefined): string {
  return ms === undefined || ms < 1_000 ? '' : `about ${pageDuration(ms)} left`;
}

/** 950, 12.3 k, 1.2 M */
export function pageCount(value: number): string {
  if (value < 1_000) return String(value);
  if (value < 999_950) return `${(value / 1_000).toFixed(1)} k`;
  return `${(value / 1_000_000).toFixed(2)} M`;
}

/** $0.0042, $1.27; a price that is not known is a dash. */
export function pageDollars(cost: number | undefined): string {
  if (cost === undefined) return '–';
  if (cost === 0) return '$0';
  return cost < 0.1 ? `$${cost.toFixed(4)}` : `$${cost.toFixed(2)}`;
}

export function pageTokensOf({ input, output, cacheRead, cacheWrite }: Usage): number {
  return input + output + cacheRead + cacheWrite;
}

/** How much of what was sent came from the cache, in per cent; undefined where nothing was sent. */
export function pageCacheShare({ input, cacheRead, cacheWrite }: Usage): number | undefined {
  const sent = input + cacheRead + cacheWrite;
  return sent === 0 ? undefined : Math.round((100 * cacheRead) / sent);
}

/** just now, 4 min ago, 3 h ago, 12 Mar */
export function pageTimeAgo(at: string, nowMs: number): string {
  const ms = nowMs - Date.parse(at);
  if (!Number.isFinite(ms)) return '';
  if (ms < 60_000) return 'just now';
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ago`;
  if (ms < 86_400_000) return `${Math.floor(ms / 3_600_000)} h ago`;
  return new Date(at).toLocaleDateString(undefined, { day: 'numeric', month: 'short' });
}

function pageTwoDigits(value: number): string {
  return String(value).padStart(2, '0');
}

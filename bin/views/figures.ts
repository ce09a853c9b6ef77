// Numbers as people read them: how long, how many tokens, how much money.

import type { Usage } from '@drover/core/model/protocol';

export function duration(ms: number): string {
  if (ms < 100) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} m ${String(seconds % 60).padStart(2, '0')} s`;
}

/** What went in, and what came out. */
export function tokens({ input, output, cacheRead, cacheWrite, estimated }: Usage): readonly [string, string] {
  const cached = cacheRead === 0 ? '' : ` (${count(cacheRead)} from cache)`;
  const about = estimated === true ? 'about ' : '';
  return [`${about}${count(input + cacheRead + cacheWrite)} tokens in${cached}`, `${about}${count(output)} out`];
}

export function dollars(cost: number): string {
  return `$${cost.toFixed(cost >= 1 ? 2 : 4)}`;
}

/** 12,345. By hand, because the first use of a locale takes longer than many a session. */
export function count(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ',');
}

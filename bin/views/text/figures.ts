// Numbers as people read them: how long, how long ago, how many tokens, how much money.

import type { TokenFigures } from '@drover/core/conversation/conversation';
import type { Usage } from '@drover/protocol/messages';

export function durationText(ms: number): string {
  if (ms < 100) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} m ${String(seconds % 60).padStart(2, '0')} s`;
}

/** 42s, 4m12s, 1h02m: for narrow places. */
export function shortDurationText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m${twoDigitsText(seconds % 60)}s`;
  return `${Math.floor(minutes / 60)}h${twoDigitsText(minutes % 60)}m`;
}

const AGES: readonly (readonly [unit: string, seconds: number])[] = [
  ['day', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
];

/** 3 min ago; a date where that is long ago. A clock that was set back makes nothing happen in the future. */
export function agoText(at: string, now: number): string {
  const seconds = Math.floor((now - Date.parse(at)) / 1000);
  if (Number.isNaN(seconds)) return '';
  if (seconds >= 31 * 86_400) return dateText(new Date(at));
  const [unit, size] = AGES.find(([, each]) => seconds >= each) ?? ['s', 1];
  const amount = Math.floor(seconds / size);
  return amount < 1 ? 'just now' : `${amount} ${unit}${unit === 'day' && amount > 1 ? 's' : ''} ago`;
}

/** 2026-11-03 14:05, where the reader is. */
export function momentText(at: string): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? '' : `${dateText(date)} ${timeOfDayText(date).slice(0, 5)}`;
}

/** 14:05:12.345, where the reader is. */
export function clockText(at: string): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime())
    ? ''
    : `${timeOfDayText(date)}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}

function dateText(date: Date): string {
  return [date.getFullYear(), date.getMonth() + 1, date.getDate()].map(twoDigitsText).join('-');
}

function timeOfDayText(date: Date): string {
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(twoDigitsText).join(':');
}

function twoDigitsText(number: number): string {
  return String(number).padStart(2, '0');
}

/** Tokens in and out. */
export function tokensText({ input, output, cacheRead, cacheWrite, estimated }: Usage): readonly [string, string] {
  const cached = cacheRead === 0 ? '' : ` (${countText(cacheRead)} from cache)`;
  const about = estimated === true ? 'about ' : '';
  return [
    `${about}${countText(input + cacheRead + cacheWrite)} tokens in${cached}`,
    `${about}${countText(output)} out`,
  ];
}

/** All of them, whichever way they went. */
export function totalTokens({ input, output, cacheRead, cacheWrite }: Usage): number {
  return input + output + cacheRead + cacheWrite;
}

export function dollarsText(cost: number): string {
  return `$${cost.toFixed(cost >= 1 ? 2 : 4)}`;
}

/** 950, 12.4k, 1.2M: for narrow places. */
export function shortCountText(number: number): string {
  if (number < 1_000) return String(number);
  if (number < 999_950) return `${(number / 1_000).toFixed(1).replace('.0', '')}k`;
  return `${(number / 1_000_000).toFixed(1).replace('.0', '')}M`;
}

/** 12,345. By hand, because the first use of a locale takes longer than many a session. */
export function countText(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** How long a prompt is: by our estimate, by the provider's word, how far they are apart, and what fits. */
export function tokenFiguresText(figures: Omit<TokenFigures, 'expected'>): readonly string[] {
  const { estimate, reported, ratio, window } = figures;
  return [
    ...(estimate === 0 ? [] : [`estimate ${countText(estimate)}`]),
    ...(reported === undefined ? [] : [`reported ${countText(reported)}`]),
    ...(ratio === undefined ? [] : [`ratio ${ratio}`]),
    ...(window === 0 ? [] : [`window ${countText(window)} tokens`]),
  ];
}

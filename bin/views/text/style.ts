// How things look: colours, or none where NO_COLOR, FORCE_COLOR or the terminal say so; and the marks of a
// task's states, in plain ASCII where a terminal has no others.

import { styleText } from 'node:util';
import { isUnchangedInView, type TaskProgress, type TaskState } from '@drover/coordinator/view/state';
import type { Io, Output } from '../../io.ts';

type Format = Parameters<typeof styleText>[0];
export type Style = (format: Format, text: string) => string;

export function textStyle(output: Output, env: Io['env']): Style {
  if (!isColoured(output, env)) return (_format, text) => text;
  return (format, text) => styleText(format, text, { validateStream: false });
}

function isColoured(output: Output, env: Io['env']): boolean {
  if (env['NO_COLOR'] !== undefined && env['NO_COLOR'] !== '') return false;
  const forced = env['FORCE_COLOR'];
  if (forced !== undefined) return forced !== '0' && forced !== 'false';
  return output.isTTY === true && env['TERM'] !== 'dumb';
}

export type Appearance = {
  readonly word: string;
  readonly sign: string;
  readonly ascii: string;
  readonly format: Format;
};

export const looksOf: Readonly<Record<TaskState, Appearance>> = {
  waiting: { word: 'waiting', sign: '·', ascii: '.', format: 'dim' },
  starting: { word: 'starting', sign: '○', ascii: 'o', format: 'cyan' },
  thinking: { word: 'thinking', sign: '●', ascii: '*', format: 'cyan' },
  running: { word: 'running', sign: '▸', ascii: '>', format: 'cyan' },
  asking: { word: 'asking', sign: '?', ascii: '?', format: 'yellow' },
  throttled: { word: 'throttled', sign: '◔', ascii: '=', format: 'yellow' },
  retrying: { word: 'retrying', sign: '↻', ascii: '~', format: 'yellow' },
  merging: { word: 'merging', sign: '→', ascii: '+', format: 'blue' },
  gate: { word: 'gate', sign: '◆', ascii: '#', format: 'blue' },
  landed: { word: 'landed', sign: '✓', ascii: 'v', format: 'green' },
  done: { word: 'done', sign: '✓', ascii: 'v', format: 'green' },
  failed: { word: 'failed', sign: '✗', ascii: 'x', format: 'red' },
  skipped: { word: 'skipped', sign: '-', ascii: '-', format: 'yellow' },
  conflict: { word: 'conflict', sign: '≠', ascii: '%', format: 'red' },
  gate_failed: { word: 'gate failed', sign: '✗', ascii: 'x', format: 'red' },
  cancelled: { word: 'cancelled', sign: '-', ascii: '-', format: 'yellow' },
};

/** As `looksOf`, except that a task that was to write and changed nothing says so. */
export function taskTextStyle(task: Pick<TaskProgress, 'state' | 'plan'>): Appearance {
  const looks = looksOf[task.state];
  return isUnchangedInView(task) ? { ...looks, word: 'no change' } : looks;
}

/** A locale that names another encoding, and the console of Linux, have no marks but ASCII. */
export function isAsciiTerminal(env: Io['env']): boolean {
  const locale = [env['LC_ALL'], env['LC_CTYPE'], env['LANG']].find((value) => value !== undefined && value !== '');
  return env['TERM'] === 'linux' || (locale !== undefined && !/utf-?8/i.test(locale));
}

/** Our own marks as ASCII; letters of others are left alone. */
export function textInAscii(text: string): string {
  return text.replace(/\P{ASCII}/gu, (mark) => ASCII_OF.get(mark) ?? mark);
}

const ASCII_OF: ReadonlyMap<string, string> = new Map([
  ...Object.values(looksOf).map(({ sign, ascii }) => [sign, ascii] as const),
  ['…', '~'],
  ['—', '-'],
  ['·', '|'],
  ['›', '>'],
]);

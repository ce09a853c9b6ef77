// What drover doctor finds out: one finding for each thing it looks at, and how findings are shown.

import { exitCode } from '../start/exit-code.ts';
import type { Io } from '../io.ts';
import { isAscii, type Style, styleFor } from '../views/text/style.ts';
import { clean, columnsOf } from '../views/text/terminal-text.ts';
import { wrapped } from '../views/text/word-wrap.ts';

/** `bad`: drover can't work before it is mended. `note`: it can, and something is worth knowing. */
type State = 'good' | 'note' | 'bad';

export type Finding = {
  readonly check: string;
  readonly state: State;
  readonly says: string;
  /** What to do about it. */
  readonly fix?: string;
  /** A provider was asked, and this is what came of it. */
  readonly asked?: true;
};

/** A provider that can't be reached, or refuses, is no fault of this machine, and has a code of its own. */
export function codeOf(findings: readonly Finding[]): number {
  const bad = findings.filter(({ state }) => state === 'bad');
  if (bad.length === 0) return exitCode.done;
  return bad.every(({ asked }) => asked === true) ? exitCode.provider : exitCode.usage;
}

const LOOKS = {
  good: ['green', '✓', '+'],
  note: ['yellow', '!', '!'],
  bad: ['red', '✗', 'x'],
} as const satisfies Record<State, readonly [Parameters<Style>[0], string, string]>;

/** A line each, with the fix below. */
export function shown(findings: readonly Finding[], io: Io): string {
  const style = styleFor(io.stdout, io.env);
  const columns = columnsOf(io.stdout);
  const nameColumns = Math.max(...findings.map(({ check }) => check.length)) + 2;
  const indent = ' '.repeat('✓ '.length + nameColumns);
  const block = (text: string): string => wrapped(clean(text), columns - indent.length).replaceAll('\n', `\n${indent}`);
  const lines = findings.flatMap(({ check, state, says, fix }) => {
    const [format, sign, ascii] = LOOKS[state];
    const mark = style(format, isAscii(io.env) ? ascii : sign);
    const advice = fix === undefined ? [] : [`${indent}${style('bold', block(fix))}`];
    return [`${mark} ${check.padEnd(nameColumns)}${block(says)}`, ...advice];
  });
  return `${[...lines, '', verdict(findings)].join('\n')}\n`;
}

function verdict(findings: readonly Finding[]): string {
  const bad = findings.filter(({ state }) => state === 'bad').length;
  if (bad === 0) return 'drover can work here.';
  const must = bad === 1 ? 'One thing has' : `${bad} things have`;
  return codeOf(findings) === exitCode.provider
    ? 'This machine is ready, but a provider is not.'
    : `${must} to be mended first; drover demo works without a key.`;
}

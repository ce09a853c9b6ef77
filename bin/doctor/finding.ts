// Findings of drover doctor: one for each check, and how they are printed.

import { exitCode } from '../start/exit-code.ts';
import type { Io } from '../io.ts';
import { isAsciiTerminal, type Style, textStyle } from '../views/text/style.ts';
import { cleanText, terminalColumns } from '../views/text/terminal-text.ts';
import { wrapText } from '../views/text/word-wrap.ts';

/** `bad`: drover can't work until it is fixed. `note`: drover works, but the user should know. */
type State = 'good' | 'note' | 'bad';

export type Finding = {
  readonly check: string;
  readonly state: State;
  readonly says: string;
  /** How to fix it. */
  readonly fix?: string;
  /** Set if the finding is about a request to a provider. */
  readonly asked?: true;
};

/** Exit code. Failed requests to a provider have their own code, because this machine is fine. */
export function doctorExitCode(findings: readonly Finding[]): number {
  const bad = findings.filter(({ state }) => state === 'bad');
  if (bad.length === 0) return exitCode.done;
  return bad.every(({ asked }) => asked === true) ? exitCode.provider : exitCode.usage;
}

const LOOKS = {
  good: ['green', '✓', '+'],
  note: ['yellow', '!', '!'],
  bad: ['red', '✗', 'x'],
} as const satisfies Record<State, readonly [Parameters<Style>[0], string, string]>;

/** One line per finding, with its fix below. */
export function doctorFindingLines(findings: readonly Finding[], io: Io): string {
  const style = textStyle(io.stdout, io.env);
  const columns = terminalColumns(io.stdout);
  const nameColumns = Math.max(...findings.map(({ check }) => check.length)) + 2;
  const indent = ' '.repeat('✓ '.length + nameColumns);
  const block = (text: string): string =>
    wrapText(cleanText(text), columns - indent.length).replaceAll('\n', `\n${indent}`);
  const lines = findings.flatMap(({ check, state, says, fix }) => {
    const [format, sign, ascii] = LOOKS[state];
    const mark = style(format, isAsciiTerminal(io.env) ? ascii : sign);
    const advice = fix === undefined ? [] : [`${indent}${style('bold', block(fix))}`];
    return [`${mark} ${check.padEnd(nameColumns)}${block(says)}`, ...advice];
  });
  return `${[...lines, '', doctorVerdict(findings)].join('\n')}\n`;
}

function doctorVerdict(findings: readonly Finding[]): string {
  const bad = findings.filter(({ state }) => state === 'bad').length;
  if (bad === 0) return 'drover can work here.';
  const must = bad === 1 ? 'One problem has' : `${bad} problems have`;
  return doctorExitCode(findings) === exitCode.provider
    ? 'This machine is ready, but a provider is not.'
    : `${must} to be fixed first; drover demo works without a key.`;
}

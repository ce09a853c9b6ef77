// Words that stand for flags: `help`, `help run`, `version`, `-v` and `-V`; and the one table of exit codes.

import { exitCodeWords } from '../start/exit-code.ts';

export const EXIT_CODES_TOPIC = 'exit-codes';

/** The same command line with `help` and `version` as flags. */
export function helpWordsAsFlags(argv: readonly string[]): readonly string[] {
  const [first = '', ...rest] = argv;
  if (['version', '-v', '-V'].includes(first) && rest.length === 0) return ['--version'];
  if (first !== 'help') return argv;
  return rest.length === 0 ? ['--help'] : [...rest, '--help'];
}

export function isAboutExitCodes([first, second]: readonly string[]): boolean {
  return first === 'help' && second === EXIT_CODES_TOPIC;
}

export function exitCodeTable(): string {
  return exitCodeWords.map(([code, meaning]) => `${String(code).padStart(3)}  ${meaning}\n`).join('');
}

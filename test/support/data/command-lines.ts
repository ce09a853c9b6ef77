// Command lines of every kind, and their results with and without yargs.

import { PassThrough } from 'node:stream';
import fc from 'fast-check';
import { expect } from 'vitest';
import {
  defineCommand,
  choiceOption,
  flagOption,
  listOption,
  parseNonEmpty,
  valueOption,
  type Command,
  type Typed,
} from '../../../bin/start/command.ts';
import { runCommandLine } from '../../../bin/start/command-line.ts';
import type { Io } from '../../../bin/io.ts';
import { parsePlainCommandLine } from '../../../bin/start/plain-words.ts';

export const declared = defineCommand({
  word: { name: 'prompt', about: 'What to do', required: false },
  options: {
    model: valueOption('Model:', 'M', 'The model', parseNonEmpty),
    view: choiceOption('Output:', 'What to show', ['lines', 'json']),
    json: flagOption('Output:', 'JSON'),
    yes: flagOption('Permission:', 'Yes'),
    'prompt-file': valueOption('Input:', 'FILE', 'A file', parseNonEmpty),
    allow: listOption('Permission:', 'RULE', 'A rule', parseNonEmpty),
    steps: { ...valueOption('Limits:', 'N', 'Steps', parseNonEmpty), formerly: 'turns' },
  },
  examples: [],
  run: async () => 0,
});

export const withTwo: Command = { ...declared, second: { name: 'task', about: 'Which', required: false } };

/** The result of yargs, or undefined if yargs reports a mistake. */
async function yargsTyped(command: Command, argv: readonly string[]): Promise<Typed | undefined> {
  let seen: Typed | undefined;
  const listening: Command = {
    ...command,
    run: async (typed) => {
      seen = typed;
      return 0;
    },
  };
  const sink = new PassThrough();
  const io = { stdin: sink, stdout: sink.resume(), stderr: sink, env: {}, cwd: '/', node: '' } as unknown as Io;
  const commands = [
    {
      name: 'exec',
      words: command.second === undefined ? '[prompt]' : '[prompt] [task]',
      about: 'Runs',
      load: async () => listening,
    },
  ];
  await runCommandLine(commands, ['exec', ...argv], io).catch((error: Error) => {
    if (error.name !== 'UsageError') throw error;
  });
  return seen;
}

const words = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom(
      '--model',
      '--json',
      '--yes',
      '--allow',
      '--steps',
      '--turns',
      '--view',
      '--prompt-file',
      '--model=a/b',
      '--allow=x',
      '--json=true',
      '--no-yes',
      '--unknown',
      '-h',
      '--help',
      '-y',
      '-',
      '--',
      '',
      'go',
      'fix it',
      'a=b',
      '--',
      '5',
      '0x10',
      '-5',
      'true',
      "'q'",
      '"q"',
      '--allow=shell(a b)',
      '--modelx',
      '--__proto__',
      '--constructor',
      '--yes=',
    ),
  },
  { weight: 2, arbitrary: fc.string({ maxLength: 8 }) },
);

/** Reads this many lines and returns how many the fast reader accepted; yargs must agree with each. */
export async function plainOnes(command: Command, numRuns: number): Promise<number> {
  let plain = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(words, { maxLength: 6 }), async (argv) => {
      const typed = parsePlainCommandLine(command, argv);
      if (typed === undefined) return;
      plain += 1;
      expect(typed).toEqual(await yargsTyped(command, argv));
    }),
    { seed: 7, numRuns },
  );
  return plain;
}

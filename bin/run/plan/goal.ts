// Where a goal comes from: the command line, a file, standard input, or the plan that is to be carried out.

import { UsageError } from '@drover/core/errors';
import { readPrompt } from '../../session/prompt.ts';
import type { Io } from '../../io.ts';

export type GoalSource = {
  readonly command: 'run' | 'plan';
  readonly word: string | undefined;
  readonly file: string | undefined;
  /** What the plan says; undefined where there is no plan, or it doesn't say. */
  readonly planned: string | undefined;
};

export async function goalOf({ command, word, file, planned }: GoalSource, io: Io): Promise<string> {
  if (word === undefined && file === undefined) {
    if (planned !== undefined) return planned;
    throw new UsageError(
      `what shall be achieved? drover ${command} "replace moment with date-fns", or - to read it from standard input`,
    );
  }
  return readPrompt({ word, file, cwd: io.cwd, stdin: io.stdin });
}

// Reads a goal from the command line, a file, standard input, or the plan file.

import { UsageError } from '@drover/core/errors';
import { readPrompt } from '../../session/prompt.ts';
import type { Io } from '../../io.ts';

export type GoalSource = {
  readonly command: 'run' | 'plan';
  readonly word: string | undefined;
  readonly file: string | undefined;
  /** Goal of the plan file; undefined without a plan file, or if it names no goal. */
  readonly planned: string | undefined;
};

export async function readGoal({ command, word, file, planned }: GoalSource, io: Io): Promise<string> {
  if (word === undefined && file === undefined) {
    if (planned !== undefined) return planned;
    throw new UsageError(
      `no goal given; run drover ${command} "replace moment with date-fns", or pass - to read it from standard input`,
    );
  }
  return readPrompt({ word, file, cwd: io.cwd, stdin: io.stdin });
}

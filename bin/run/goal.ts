// Where a goal comes from: the command line, a file, standard input, or the plan that is to be carried out.

import { UsageError } from '@drover/core/failure';
import { readPrompt } from '../execution/prompt.ts';
import type { Io } from '../io.ts';

export type GoalSource = {
  readonly word: string | undefined;
  readonly file: string | undefined;
  /** What the plan says; undefined where there is no plan, or it doesn't say. */
  readonly planned: string | undefined;
};

export async function goalOf({ word, file, planned }: GoalSource, io: Io): Promise<string> {
  if (word === undefined && file === undefined) {
    if (planned !== undefined) return planned;
    throw new UsageError(
      'what shall be achieved? drover run "replace moment with date-fns", - to read it from standard input, or --plan FILE',
    );
  }
  return readPrompt({ word, file, cwd: io.cwd, stdin: io.stdin });
}

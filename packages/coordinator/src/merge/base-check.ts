// The base check: prepares a workspace on the base commit and runs the gates there, while the coordinator plans.
//
// Guarantees
//   1. No worker starts before it has passed, so a project that can't be set up or tested costs no worker's request.
//   2. The results are gate events of the base's tree. A resumed run knows them, and so does the merge train.

import { DroverError } from '@drover/core/errors';
import type { RunSettings } from '@drover/protocol/run';
import type { MergeTrain } from './train.ts';

/** Words of programs that miss another program or a library. */
const MISSING =
  /\b(?:command not found|: not found|cannot find (?:module|package)|modulenotfounderror|no module named|err_module_not_found|could not find gem|failed to open stream: no such file|can't find crate|a command was not found)\b/i;

export type BaseOrder = {
  readonly settings: Pick<RunSettings, 'gates' | 'setup' | 'dependencies'>;
  readonly train: Pick<MergeTrain, 'baseVerdict'>;
  /** Prepares a workspace on the base, and returns it. */
  readonly prepare: () => Promise<void>;
};

/** Returns the gates that fail and may do so. Throws DroverError with `base.failed` if a gate is red, and with `setup.failed` if no workspace can be prepared. */
export async function checkBase({ settings, train, prepare }: BaseOrder): Promise<readonly string[]> {
  const { gates, setup = [] } = settings;
  if (gates.length === 0) {
    if (setup.length > 0) await prepare();
    return [];
  }
  const { verdict, red } = await train.baseVerdict();
  if (verdict.passed) return red;
  const { command, reason: output } = verdict;
  const cause = likelyCause(output, settings);
  throw new DroverError({ kind: 'base.failed', command, output, ...(cause !== undefined && { cause }) });
}

function likelyCause(output: string, { setup, dependencies }: BaseOrder['settings']): string | undefined {
  if (!MISSING.test(output)) return undefined;
  if (setup === undefined && dependencies === undefined)
    return 'the workspace has no dependencies; --setup auto brings or installs them, --setup "<command>" runs a command';
  return 'the workspace lacks a program or a library, though it was prepared; --setup "<command>" prepares it otherwise';
}

// The base check: runs setup before the first request, and the gates on the base commit while the coordinator plans.
//
// Guarantees
//   1. No worker starts before it has passed, so a project that can't be tested costs no worker's request.
//   2. The results are gate events of the base's tree. A resumed run knows them, and so does the merge train.

import { DroverError } from '@drover/core/errors';
import type { RunSettings } from '@drover/protocol/run';
import type { Slots, Wish } from '../slots/slots.ts';
import type { MergeTrain } from './train.ts';

/** Words of programs that miss another program or a library. */
const MISSING =
  /\b(?:command not found|: not found|cannot find (?:module|package)|modulenotfounderror|no module named|err_module_not_found|could not find gem|failed to open stream: no such file|can't find crate|a command was not found)\b/i;

export type BaseOrder = {
  readonly settings: Pick<RunSettings, 'gates' | 'setup' | 'dependencies'>;
  readonly train: Pick<MergeTrain, 'baseVerdict'>;
};

type SetupPlace = { readonly slots: Pick<Slots, 'take'>; readonly settings: Pick<RunSettings, 'setup' | 'base'> };

/**
 * Prepares a workspace before the first request: a project that can't be prepared costs nothing. Throws DroverError
 * with `setup.failed`.
 */
export async function trySetupOnBase(
  { slots, settings: { setup = [], base } }: SetupPlace,
  owner: Omit<Wish, 'base' | 'signal'>,
  signal: AbortSignal,
): Promise<void> {
  if (setup.length > 0) await (await slots.take({ ...owner, base, signal })).release();
}

/** Returns the gates that fail and may do so. Throws DroverError with `base.failed` if a gate is red. */
export async function checkBaseCommit({ settings, train }: BaseOrder): Promise<readonly string[]> {
  if (settings.gates.length === 0) return [];
  const { verdict, red } = await train.baseVerdict();
  if (verdict.passed) return red;
  const { command, reason: output } = verdict;
  const cause = likelyCauseOfRedBase(output, settings);
  throw new DroverError({ kind: 'base.failed', command, output, ...(cause !== undefined && { cause }) });
}

function likelyCauseOfRedBase(output: string, { setup, dependencies }: BaseOrder['settings']): string | undefined {
  if (!MISSING.test(output)) return undefined;
  if (setup === undefined && dependencies === undefined)
    return 'the workspace has no dependencies; a new run with --setup auto brings them, or --setup "<command>" makes them';
  return 'the prepared workspace lacks a program or a library; a new run with --setup "<command>" prepares it otherwise';
}

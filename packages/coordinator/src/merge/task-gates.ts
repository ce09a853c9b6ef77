// The gates of one task: commands that must pass in its own workspace before its work may land.
//
// The gates see what the worker left. The commit is made before them: what a gate builds or rewrites there
// is not part of the work. A task that changed nothing is tested on its base: under a red gate it has failed.

import type { Failure } from '@drover/protocol/failures';
import type { Git } from '../git/git.ts';
import type { Workspace } from '../slots/slots.ts';
import type { GateEvent } from '@drover/protocol/events';
import { Gates } from './gate.ts';

export type TaskGates = {
  readonly task: string;
  readonly gates: readonly string[];
  readonly workspace: Pick<Workspace, 'path' | 'sandbox'>;
  readonly commit: string | undefined; // absent if nothing was changed
  readonly base: string;
  readonly store: Git;
  readonly env: Readonly<Record<string, string>>;
  readonly outputFolder: string;
  readonly emit: (event: GateEvent) => void;
};

/** Returns why the work may not land; undefined if all gates pass. Throws if the signal aborts. */
export async function taskGateFailure(given: TaskGates, signal: AbortSignal): Promise<Failure | undefined> {
  const { task, gates, workspace, base, store, env, outputFolder, emit } = given;
  if (gates.length === 0) return undefined;
  const commit = given.commit ?? base;
  const tree = (await store(['rev-parse', '--verify', `${commit}^{tree}`], { signal })).out.trim();
  const { path, sandbox } = workspace;
  const checkout = async () => ({ path, sandbox, release: async () => undefined });
  const tried = new Gates({ gates, checkout, env, outputFolder, knownGates: new Map(), emit });
  const verdict = await tried.verdict({ commit, tree, tasks: [task] }, signal);
  if (verdict.passed) return undefined;
  const { command, reason: output } = verdict;
  return { kind: 'gate.failed', command, output, ...(given.commit === undefined && { unchanged: true }) };
}

// The gates of one task: commands that must pass in its own workspace before its work may land.
//
// They see what the worker left, the commit is made before them: what a gate builds or rewrites there is
// not part of the work. Where nothing was changed there is nothing to test.

import type { Failure } from '@drover/core/failure';
import type { Git } from './git.ts';
import type { Workspace } from './workspace/slots.ts';
import { type GateEvent, Gates } from './merge/gate.ts';

export type TaskGates = {
  readonly task: string;
  readonly gates: readonly string[];
  readonly workspace: Pick<Workspace, 'path' | 'sandbox'>;
  readonly commit: string;
  readonly store: Git;
  readonly env: Readonly<Record<string, string>>;
  readonly outputFolder: string;
  readonly emit: (event: GateEvent) => void;
};

/** Why its work may not land; undefined where all pass. Throws where it is stopped by the signal. */
export async function gateFailure(given: TaskGates, signal: AbortSignal): Promise<Failure | undefined> {
  const { task, gates, workspace, commit, store, env, outputFolder, emit } = given;
  if (gates.length === 0) return undefined;
  const tree = (await store(['rev-parse', '--verify', `${commit}^{tree}`], { signal })).out.trim();
  const { path, sandbox } = workspace;
  const checkout = async () => ({ path, sandbox, release: async () => undefined });
  const tried = new Gates({ gates, checkout, env, outputFolder, knownGates: new Map(), emit });
  const verdict = await tried.verdict({ commit, tree, tasks: [task] }, signal);
  return verdict.passed ? undefined : { kind: 'gate.failed', command: verdict.command, output: verdict.reason };
}

// Checks the sandbox: starts it, and has a program inside try to escape.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openControlGroup } from '@drover/sandbox/linux/limits';
import type { FoundSandbox } from '@drover/sandbox/open';
import type { SandboxSystem } from '@drover/sandbox/policy';
import type { Io } from '../io.ts';
import { findSandbox } from '../sandbox/containment.ts';
import type { Settings } from '../start/settings.ts';
import { isContinuousIntegration } from '../views/view-choice.ts';
import type { Finding } from './finding.ts';

const check = 'sandbox';

/** Probes anew, without the stored result, and stores nothing. */
export async function checkSandbox(io: Io, settings: Settings | undefined): Promise<readonly Finding[]> {
  const state = await mkdtemp(join(tmpdir(), 'drover-doctor-'));
  try {
    const found = await findSandbox(io, state, { again: true });
    return [...sandboxStateFindings(found, io, settings), ...escapeAttemptFindings(found)];
  } finally {
    await rm(state, { recursive: true, force: true });
  }
}

function sandboxStateFindings(found: FoundSandbox, io: Io, settings: Settings | undefined): readonly Finding[] {
  const mode = settings?.sandbox ?? (isContinuousIntegration(io.env) ? 'required' : 'auto');
  if (found.works) {
    const says = `${found.system.version} contains the commands of agents`;
    const off: Finding = { check, state: 'note', says: `your config sets sandbox: off, so commands run in the open` };
    return mode === 'off' ? [off] : [{ check, state: 'good', says }, checkSandboxLimits(found.system)];
  }
  const { missing, fix } = found;
  if (mode === 'required') return [{ check, state: 'bad', says: `${missing}, and commands must be contained`, fix }];
  return [{ check, state: 'note', says: `${missing}, so every command of an agent is asked about`, fix }];
}

/** Linux does not count the processes of root unless they are in a control group. */
function checkSandboxLimits({ limits, backend }: SandboxSystem): Finding {
  const group = openControlGroup('doctor', limits);
  group.close();
  const isRoot = process.getuid?.() === 0;
  if (group.folders.length > 0)
    return { check, state: 'good', says: 'a control group bounds how much a task uses together' };
  if (!isRoot || backend !== 'bubblewrap')
    return { check, state: 'good', says: 'resource limits bound each process of a task' };
  const fix = 'run drover as another user than root, or where control groups can be made';
  return { check, state: 'note', says: 'nothing bounds how many processes a command of root can start', fix };
}

function escapeAttemptFindings({ checks }: FoundSandbox): readonly Finding[] {
  return checks.map(({ name, contained }) =>
    contained
      ? { check, state: 'good', says: `a command inside tried to ${name}, and could not` }
      : { check, state: 'bad', says: `a command inside could ${name}`, fix: 'report this with all of these lines' },
  );
}

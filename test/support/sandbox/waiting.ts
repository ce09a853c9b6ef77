// Lists the sandboxes that wait for a command, from this machine's processes.

import { readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { processesWith } from '../../cli/program.ts';
import type { Box } from './box.ts';
import { until } from '../until.ts';

type Kept = Pick<Box, 'policy'>;

/** The sandbox's own process is excluded; its arguments contain the shell's. */
export function isShell(id: string): boolean {
  return processesWith('IFS= read -r -d').includes(id) && !processesWith('--unshare-user').includes(id);
}

/** The shell that waits in a box, if there is one; a shell ends with its command. */
export async function waiting({ policy }: Kept): Promise<string> {
  for (;;) {
    await delay(5);
    const shell = processesWith(policy.folder).flatMap(childrenOf).find(isShell);
    if (shell !== undefined) return shell;
  }
}

/** The name of the process namespace that a process is in; `readlink /proc/self/ns/pid` says the same inside. */
export function namespaceOf(id: string): string {
  return readlinkSync(`/proc/${id}/ns/pid`);
}

export async function allGone({ policy }: Kept): Promise<void> {
  await until(() => processesWith(policy.folder).length === 0);
}

function childrenOf(id: string): readonly string[] {
  try {
    return readFileSync(`/proc/${id}/task/${id}/children`, 'utf8').trim().split(' ');
  } catch (error) {
    // The process has ended meanwhile.
    if (error instanceof Error && 'code' in error) return [];
    throw error;
  }
}

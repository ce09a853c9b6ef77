// A task that stops in the middle of its third call, until the test lets it continue. Its run is a process of its own.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Shown } from '@drover/core/bus';
import type { Script } from '@drover/rehearsal/script';
import type { Program } from '../../cli/program.ts';
import { calls, planned, submits, writes } from '../run/run-desk.ts';
import { temporaryFolder } from '../workspace.ts';
import { HostsDesk } from './hosts-desk.ts';

const WAITS_MAX = 600; // polls of 0.1 s each, so that a process ends soon after its test

export type HeldTask = {
  readonly desk: HostsDesk;
  /** Lets the third call end. */
  readonly letGo: () => Promise<void>;
  /** The file that the call waits for: the command line of its process has it. */
  readonly flag: string;
};

export async function heldTask(): Promise<HeldTask> {
  const flag = join(await temporaryFolder(), 'go');
  const script: Script = planned({
    held: {
      answers: [
        writes('one.txt', 'one\n'),
        calls('shell', { command: 'echo two >> one.txt' }),
        calls('shell', { command: heldCommand(flag) }),
        submits('did it'),
      ],
    },
  });
  const desk = await HostsDesk.with(script);
  return { desk, flag, letGo: () => writeFile(flag, '') };
}

function heldCommand(flag: string): string {
  return `echo begun >> one.txt; n=0; until [ -e '${flag}' ] || [ $n -gt ${WAITS_MAX} ]; do sleep 0.1; n=$((n+1)); done; echo three >> one.txt`;
}

/** Resolves when the third call runs on a host, and the run knows of it. */
export async function holds(run: Program): Promise<void> {
  await run.printed('"tool_execution_start","args":{"command":"echo begun');
}

/** Checks the end of a run whose call was cut off: all before it is there, once, and nothing was bought twice. */
export function expectMoved(events: readonly Shown[], desk: HostsDesk): void {
  const end = events.findLast((event) => event.type === 'run_end');
  expect(end?.tasks.map(({ status, attempts }) => ({ status, attempts }))).toEqual([{ status: 'landed', attempts: 1 }]);
  // The plan, four answers of the worker, and the last words of the coordinator.
  expect(desk.desk.server.requests.length).toBe(6);
}

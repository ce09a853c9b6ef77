// A whole run in a separate process, in which one thread fails during its first task.

import { spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { once } from 'node:events';
import { buffer } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import type { EventType } from '@drover/protocol/events';
import { calls, planned, RunDesk, submits, told, writes } from './run-desk.ts';
import { temporaryFolder } from '../workspace.ts';

const FAULT = join(import.meta.dirname, 'thread-fault.ts');
const DROVER = join(import.meta.dirname, '..', '..', '..', 'bin', 'drover.ts');

/** The outcome that every lost thread must lead to. */
export const TRIED_AGAIN = {
  code: 0,
  tasks: [
    ['first', 'landed', 2],
    ['second', 'landed', 1],
  ],
  attempts: [
    [1, 'failed', true, 'worker.lost'],
    [2, 'finished', false, undefined],
  ],
  tree: { 'a.txt': 'one', 'first.txt': 'at the second try', 'second.txt': 'second' },
  openCalls: 0,
  processesLeft: '',
};

/** One worker at a time, so that the failing thread is the one of the task that names the fault. */
export async function runWithLostThread(fault: 'exit' | 'throw' | 'loop' | 'heap'): Promise<unknown> {
  const faults = await temporaryFolder();
  const seconds = `7777.${process.pid}${Date.now()}`;
  const desk = await RunDesk.with(
    planned({
      first: {
        answers: [calls('shell', { command: `printf ${fault} > ${faults}/fault; sleep ${seconds}` })],
        again: [writes('first.txt', 'at the second try\n'), submits('first')],
      },
      second: { answers: [writes('second.txt', 'second\n'), submits('second')] },
    }),
  );
  const argv = [
    'run',
    'do two things',
    '--model',
    'anthropic/scripted',
    '--workers',
    '1',
    '--yes',
    '--deliver',
    'branch',
    '--sandbox',
    'auto',
    '--writable',
    faults,
    '--json',
  ];
  const child = spawn(process.execPath, [DROVER, ...argv], {
    cwd: desk.repository,
    env: {
      ...process.env,
      NODE_OPTIONS: `--import=${FAULT}`,
      DROVER_TEST_FAULT: faults,
      DROVER_HOME: desk.home,
      ANTHROPIC_API_KEY: 'k',
      ANTHROPIC_BASE_URL: desk.server.url,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [stdout, stderr, [code]] = await Promise.all([
    buffer(child.stdout),
    buffer(child.stderr),
    once(child, 'close'),
  ]);
  const { end, events } = told({ code: code as number, stdout: stdout.toString(), stderr: stderr.toString() });
  const count = (type: EventType) => events.filter((event) => event.type === type).length;
  return {
    code,
    tasks: end.tasks.map(({ task, status, attempts }) => [task, status, attempts]),
    attempts: events.flatMap((event) =>
      event.type === 'task_end' && event.task === 'first'
        ? [[event.attempt, event.status, event.again, event.failure?.kind]]
        : [],
    ),
    tree: desk.delivered(end.run ?? ''),
    openCalls: count('tool_execution_start') - count('tool_execution_end'),
    processesLeft: spawnSync('pgrep', ['-f', `sleep ${seconds}`]).stdout.toString(),
  };
}

// shell: commands of every behaviour, and no process left behind.

import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { endAllChildProcesses, runChildProcess, runningProcessGroups } from '@drover/core/tools/process/child';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import { launchProcessesWith } from '@drover/core/tools/process/start';
import { shell } from '@drover/core/tools/shell';
import { runTool } from '@drover/core/tools/tool';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { openLauncher, type RunLauncher } from '../../../bin/run/open-launcher.ts';
import { listening } from '../../support/serve/listening.ts';
import { proves } from '../../support/proves.ts';
import { memoryGrowthDuring, workspace } from '../../support/workspace.ts';
import { until } from '../../support/until.ts';

// A number of seconds that no other sleep on this machine has.
const LONG = `9${process.pid}.25`;
// The promise is two seconds. A busy machine takes longer, and one that forgets the processes takes for ever.
const STOP_MS_MAX = 15_000;

/** The names of processes on this machine with LONG among their arguments. */
function sleepers(): readonly string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((id) => {
      try {
        const words = readFileSync(`/proc/${id}/cmdline`, 'latin1').split('\0');
        const isDead = / Z /.test(readFileSync(`/proc/${id}/stat`, 'latin1'));
        return words.some((word) => word.includes(LONG)) && !isDead ? [words[0] ?? ''] : [];
      } catch {
        return [];
      }
    });
}

afterEach(() => {
  const left = sleepers();
  endAllChildProcesses('SIGKILL'); // so that one failure does not spread to the next test
  expect(left).toEqual([]);
  expect(runningProcessGroups()).toEqual([]);
});

async function ran(command: string, timeoutMs = 10_000) {
  const { call } = await workspace({ 'a.txt': 'content\n' });
  const { details, ...output } = await call(shell, { command, timeoutMs });
  const { durationMs: _, ...told } = details as { durationMs: number; exitCode?: number; signal?: string };
  return { ...output, ...told };
}

describe.each([
  ['here', () => void launchProcessesWith(undefined)],
  ['by a launcher', () => openLauncher(childProcessEnvironment(process.env))],
])('started %s', (_, open: () => RunLauncher | undefined) => {
  let launcher: RunLauncher | undefined;
  beforeAll(async () => {
    launcher = open();
    if (launcher !== undefined) await listening(launcher.address.path);
  });
  afterAll(() => launcher?.close());

  test('a command is a child of the process that starts it', async () => {
    expect(await ran('echo $PPID')).toEqual({ output: String(launcher?.pid ?? process.pid), exitCode: 0 });
  });

  test.each<[string, string, object]>([
    ['says something', 'cat a.txt', { output: 'content', exitCode: 0 }],
    ['says nothing', 'true', { output: '(no output)', exitCode: 0 }],
    [
      'uses both streams',
      'for i in 1 2 3; do echo $i; echo e$i >&2; done',
      { output: '1\ne1\n2\ne2\n3\ne3', exitCode: 0 },
    ],
    ['fails', 'echo no; exit 3', { output: 'no\n[exit code 3]', isError: true, exitCode: 3 }],
    [
      'does not exist',
      'no-such-thing',
      { output: 'bash: line 1: no-such-thing: command not found\n[exit code 127]', isError: true, exitCode: 127 },
    ],
    ['kills itself', 'kill -KILL $$', { output: '(no output)\n[ended by SIGKILL]', isError: true, signal: 'SIGKILL' }],
    ['waits for input', 'cat; read answer || echo "nobody answered"', { output: 'nobody answered', exitCode: 0 }],
    [
      'asks the terminal',
      'exec 2>/dev/null; cat /dev/tty || echo "no terminal"',
      { output: 'no terminal', exitCode: 0 },
    ],
    [
      'writes binary data',
      "head -c 1234567 /dev/zero | tr '\\0' '\\377'; true",
      { output: expect.stringMatching(/^binary data, 1\.2 MB; the whole output is in /), exitCode: 0 },
    ],
    ['writes a little binary data', "printf '\\377\\000\\376'", { output: 'binary data, 3 bytes', exitCode: 0 }],
    ['has several lines', 'cat <<END\na $((1+1))\nEND\n# the end', { output: 'a 2', exitCode: 0 }],
  ])('a command that %s', async (_, command, expected) => {
    expect(await ran(command)).toEqual(expected);
  });

  test('a command sees the allowed environment, and no key', async () => {
    const { context } = await workspace();
    const given = { ...context(), env: { PATH: context().env['PATH'] ?? '', LANG: 'C' } };
    const { output } = await runTool(shell, { command: 'env | sort' }, given);
    const names = output.split('\n').map((line) => line.split('=')[0]);
    expect(names.filter((name) => !name?.startsWith('GIT_CONFIG_'))).toEqual([
      'DROVER_CHILD',
      'GIT_EDITOR',
      'GIT_OPTIONAL_LOCKS',
      'GIT_PAGER',
      'GIT_TERMINAL_PROMPT',
      'LANG',
      'PAGER',
      'PATH',
      'PWD',
      'SHLVL',
      '_',
    ]);
  });

  test('a command has a process group of its own', async () => {
    const { call } = await workspace();
    const { output } = await call(shell, { command: 'echo $$; ps -o pgid= -p $$ | tr -d " "' });
    const [id, group] = output.split('\n');
    expect(group).toBe(id);
  });

  test('output of a command is streamed while it runs', async () => {
    const { context } = await workspace();
    const deltas: string[] = [];
    const running = runTool(
      shell,
      { command: 'echo first; sleep 0.3; echo second; sleep 0.3; echo third' },
      { ...context(), onDelta: (delta) => deltas.push(delta) },
    );
    expect((await running).output).toBe('first\nsecond\nthird');
    expect(deltas[0]).toBe('first\n');
    expect(deltas.join('')).toBe('first\nsecond\nthird\n');
  });

  test('long output is cut in the middle, and the file holds all of it', async () => {
    const { context } = await workspace();
    const given = context();
    const { output } = await runTool(shell, { command: 'seq 200000; exit 1' }, given);
    expect(output).toMatch(/^1\n2\n3\n[^]* left out; the whole output is in [^]*\n199999\n200000\n\[exit code 1\]$/);
    const kept = await readFile(join(given.outputFolder, `${given.callId}.txt`), 'utf8');
    expect(kept).toBe(`${Array.from({ length: 200_000 }, (_, index) => index + 1).join('\n')}\n`);
  });

  proves('output.bounded', 'memory does not grow with the output, and the end is not lost', async () => {
    const { call } = await workspace();
    let output = '';
    const growth = await memoryGrowthDuring(async () => {
      ({ output } = await call(shell, { command: 'yes 0123456789 | head -c 200000000; echo; echo the end' }));
    });
    expect(output).toMatch(/^0123456789\n[^]* left out; the first 64\.0 MB are in [^]*\nthe end$/);
    expect(growth.all).toBeLessThan(64_000_000);
    expect(growth.buffers).toBeLessThan(16_000_000);
  });

  test.each([
    ['keeps the output open', `sleep ${LONG} & echo started`, 'started\n[ended what it left running: 1 process]'],
    ['left the group', `setsid sleep ${LONG} & echo started`, 'started\n[ended what it left running: 1 process]'],
    ['is silent', `sleep ${LONG} >/dev/null 2>&1 & echo started`, 'started\n[ended what it left running: 1 process]'],
    [
      'never stops talking',
      `(while sleep 0.01; do echo again; sleep 0 ${LONG.slice(0, 0)}; done; sleep ${LONG}) & exit 0`,
      expect.stringMatching(/\[ended what it left running: \d+ process/),
    ],
  ])('a command ends even if something it started %s', async (_, command, output) => {
    expect(await ran(command)).toEqual({ output, exitCode: 0 });
  });

  test('a command has a time limit', async () => {
    expect(await ran(`echo begun; sleep ${LONG}`, 1_500)).toEqual({
      output: 'begun\n[stopped after 1.5 s: give more with timeoutMs, up to 1800000]',
      isError: true,
      signal: 'SIGTERM',
    });
  });

  const STUBBORN = [
    ['listens', `sleep ${LONG}`],
    ['ignores the signal', `trap '' TERM; echo deaf; sleep ${LONG}; sleep ${LONG}`],
    ['leaves the group', `setsid sleep ${LONG} & sleep ${LONG}`],
    [
      'leaves the group and ignores the signal',
      `trap '' TERM; setsid bash -c "trap '' TERM; sleep ${LONG}; sleep ${LONG}" & sleep ${LONG}; wait`,
    ],
    ['forks twice and is nobody’s child', `(setsid bash -c "sleep ${LONG}" >/dev/null 2>&1 &) ; sleep ${LONG}`],
    ['wipes its environment', `env -i setsid sleep ${LONG} & sleep ${LONG}`],
    [
      'wipes its environment and ignores the signal',
      `env -i setsid bash -c "trap '' TERM; sleep ${LONG}; sleep ${LONG}" & sleep ${LONG}`,
    ],
    [
      'starts more when told to stop',
      `trap 'setsid sleep ${LONG} & setsid sleep ${LONG} &' TERM; sleep ${LONG}; sleep ${LONG}`,
    ],
  ] as const;

  for (const [temper, command] of STUBBORN) {
    proves(
      'cancel.leaves-nothing',
      `a cancelled command that ${temper} ends within two seconds, with its processes`,
      async () => {
        const { call } = await workspace();
        const stop = new AbortController();
        const running = call(shell, { command }, stop.signal);
        await until(() => sleepers().length > 0);
        await delay(200);

        const asked = performance.now();
        stop.abort();
        const { output, isError } = await running;
        expect(sleepers()).toEqual([]);
        expect(output).toMatch(/\n\[interrupted\]$/);
        expect(isError).toBe(true);
        expect(performance.now() - asked).toBeLessThan(STOP_MS_MAX);
      },
    );
  }

  test('a call cancelled before its start is not started', async () => {
    const { call } = await workspace();
    const stop = new AbortController();
    stop.abort();
    expect(await call(shell, { command: `sleep ${LONG}` }, stop.signal)).toEqual({
      output: 'interrupted before it was started',
      isError: true,
    });
  });

  test('a process cancelled during its start ends at once', async () => {
    const { cwd } = await workspace();
    const stop = new AbortController();
    const env = childProcessEnvironment(process.env);
    const spec = { file: 'sleep', args: [LONG], cwd, env, callId: 'c', timeoutMs: 5_000, onStdout: () => undefined };
    const running = runChildProcess(spec, stop.signal);
    stop.abort();
    const { endedBy, durationMs } = await running;
    expect({ endedBy, isSoon: durationMs < 4_000 }).toEqual({ endedBy: 'abort', isSoon: true });
  });

  test('all children can be ended at once before the process ends', async () => {
    const { call } = await workspace();
    const running = [
      call(shell, { command: `sleep ${LONG}` }),
      call(shell, { command: `env TERM=x setsid sleep ${LONG} >/dev/null 2>&1 & sleep ${LONG}` }),
    ];
    // A daemon of an earlier, successful call. Until it has left the group, it counts as a process left running.
    await call(shell, {
      command: `setsid sh -c 'echo >ready; exec sleep ${LONG}' >/dev/null 2>&1 </dev/null & until [ -e ready ]; do sleep 0.05; done`,
    });
    await until(() => sleepers().filter((name) => name === 'sleep').length >= 4);
    expect(runningProcessGroups()).toHaveLength(2);

    endAllChildProcesses('SIGKILL');
    expect((await Promise.all(running)).map(({ isError }) => isError)).toEqual([true, true]);
    await until(() => sleepers().length === 0);
  });

  test('many commands at once keep their outputs apart', async () => {
    const { call } = await workspace();
    const outputs = await Promise.all(
      Array.from(
        { length: 20 },
        async (_, index) => (await call(shell, { command: `sleep 0.1; echo ${index}` })).output,
      ),
    );
    expect(outputs).toEqual(Array.from({ length: 20 }, (_, index) => String(index)));
  });

  test('a command too long for the system is refused with a reason', async () => {
    const { call } = await workspace();
    expect((await call(shell, { command: `echo ${'x'.repeat(200_000)}` })).output).toBe(
      'the command is longer than 120000 bytes: write it to a file and run that',
    );
  });

  test('a missing workspace is reported', async () => {
    const { context } = await workspace();
    const gone = { ...context(), cwd: '/nonexistent-folder' };
    const { output, isError } = await runTool(shell, { command: 'true' }, gone);
    expect(isError).toBe(true);
    expect(output).toMatch(/could not be started in \/nonexistent-folder: ENOENT$/);
  });
});

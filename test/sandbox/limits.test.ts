// Resource limits: a bomb ends its own command only. Processes, memory, files, descriptors, CPU time and disk are
// bounded. The limits here are small to spare the machine.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openControlGroup } from '@drover/sandbox/linux/limits';
import type { Limits } from '@drover/sandbox/policy';
import { expect, onTestFinished, test } from 'vitest';
import { processesWith } from '../cli/program.ts';
import { box, type Box, inSandbox, runInside } from '../support/sandbox/box.ts';
import { until } from '../support/until.ts';

const MIB = 1024 * 1024;
let groups = 0;

inSandbox('limits of a command', (system) => {
  /** A box with a control group, if the machine has control groups. */
  function bounded(limits: Partial<Limits>): Box {
    const plain = box(system, { limits });
    const group = openControlGroup(`test-${groups++}`, plain.policy.system.limits);
    onTestFinished(group.close);
    return { ...plain, policy: { ...plain.policy, groups: group.folders } };
  }

  // Without a control group, root has no limit of processes.
  const canCount = () => process.getuid?.() !== 0 || bounded({}).policy.groups.length > 0;

  test('a fork bomb ends its own command only', async () => {
    if (!canCount()) {
      process.stderr.write(
        '\n*** LEFT OUT, for want of control groups: a fork bomb of root ends its own command only.\n\n',
      );
      return;
    }
    const here = bounded({ processes: 64 });
    const neighbour = runInside(box(system), 'sleep 1; echo unharmed');
    // Three generations with a bound each: 400 processes at most.
    writeFileSync(
      join(here.root, 'bomb.sh'),
      'n=${1:-0}; [ $n -ge 3 ] && exec sleep 301; for i in 1 2 3 4 5 6 7; do bash bomb.sh $((n+1)) & done; wait',
    );
    const ran = await runInside(here, 'timeout -s KILL 3 bash bomb.sh 2>&1 | tail -c 300; echo ended', {
      timeoutMs: 8_000,
    });
    expect(ran.output).toMatch(/fork|Resource temporarily unavailable/);
    expect((await neighbour).output).toBe('unharmed\n');
    expect(processesWith('bomb.sh')).toEqual([]);
  });

  test('a memory bomb ends its own command only', async () => {
    const here = bounded({ memoryBytes: 300 * MIB });
    const neighbour = runInside(box(system), 'sleep 1; echo unharmed');
    const bomb = 'a = []\nfor i in range(60):\n    a.append(bytearray(20 * 1024 * 1024))\nprint("all there")\n';
    writeFileSync(join(here.root, 'bomb.py'), bomb);
    const ran = await runInside(here, 'python3 bomb.py; echo "exit $?"');
    expect(ran.output).not.toContain('all there');
    expect(ran.output).toMatch(/exit (1|137)\n$|^$/);
    expect((await neighbour).output).toBe('unharmed\n');
  });

  test('files in RAM are bounded', async () => {
    const ran = await runInside(
      bounded({}),
      'head -c 20M /dev/zero > /run/big; echo x > /dev/big; echo x > /dev/null; df --output=size -k /dev/shm | tail -1',
    );
    expect(ran.output).toMatch(/No space left on device\n.*\/dev\/big: Read-only file system\n *524288\n/);
  });

  test('a file grows no further than its limit', async () => {
    const here = bounded({ fileBytes: MIB });
    const ran = await runInside(here, 'head -c 5M /dev/zero > big; echo "exit $?"');
    expect(ran.output).toMatch(/File size limit exceeded|File too large/);
    expect(statSync(join(here.root, 'big')).size).toBe(MIB);
  });

  test('a command that fills the disk is ended with the reason', async () => {
    const { root } = box(system);
    const { bavail, bsize } = statfsSync(root);
    // The disk is full after 64 MB, long before the watcher's next check.
    const here = box(system, { root, limits: { diskFreeBytes: bavail * bsize - 64 * MIB } });
    const script =
      'while :; do head -c 8M /dev/zero >> fill; sleep 0.02; [ $(stat -c %s fill) -gt 1000000000 ] && exit 9; done';
    const ran = await runInside(here, script, { timeoutMs: 30_000 });
    expect({ isDiskFull: ran.isDiskFull, endedBy: ran.endedBy }).toEqual({ isDiskFull: true, endedBy: 'abort' });
    expect(readdirSync(root)).toEqual(['fill']);
  });

  test('a command that uses up the files of the disk is ended with the reason', async () => {
    const { root } = box(system);
    const { files, ffree } = statfsSync(root);
    if (files === 0) return void process.stderr.write('\n*** LEFT OUT: this file system does not count its files.\n\n');
    const here = box(system, { root, limits: { diskFreeFiles: ffree - 2_000 } });
    const script = 'for i in $(seq 200); do mkdir $i; (cd $i; touch $(seq 500)); sleep 0.02; done; sleep 20';
    const ran = await runInside(here, script, { timeoutMs: 50_000 });
    expect({ isDiskFull: ran.isDiskFull, endedBy: ran.endedBy }).toEqual({ isDiskFull: true, endedBy: 'abort' });
  });

  test('a command that fills the disk of its private /tmp is ended too', async () => {
    // /tmp is a file system of its own; the workspace is on another.
    const folder = mkdtempSync('/dev/shm/drover-limits-');
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    for (const name of ['home', 'tmp']) mkdirSync(join(folder, name));
    const { bavail, bsize } = statfsSync(folder);
    const root = mkdtempSync(join(process.cwd(), 'node_modules', '.drover-limits-'));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    const isApart = statSync(root).dev !== statSync(folder).dev && statfsSync(root).bavail > bavail;
    if (!isApart) return void process.stderr.write('\n*** LEFT OUT, for want of two disks: a full private /tmp.\n\n');
    const plain = box(system, { root, limits: { diskFreeBytes: bavail * bsize - 64 * MIB } });
    const script = 'while :; do head -c 8M /dev/zero >> /tmp/fill; sleep 0.02; done';
    const ran = await runInside({ root, policy: { ...plain.policy, folder } }, script, { timeoutMs: 30_000 });
    expect({ isDiskFull: ran.isDiskFull, endedBy: ran.endedBy }).toEqual({ isDiskFull: true, endedBy: 'abort' });
  });

  test('a command whose folder is removed runs to its end', async () => {
    const here = box(system);
    const running = runInside(here, 'touch started; sleep 1.2; echo over');
    await until(() => existsSync(join(here.root, 'started')));
    rmSync(here.root, { recursive: true });
    expect(await running).toMatchObject({ output: 'over\n', endedBy: 'itself', isDiskFull: false });
  });

  test('open files and CPU time are bounded', async () => {
    const here = bounded({ openFiles: 64, cpuSeconds: 1 });
    const opened = await runInside(here, 'python3 -c "a=[open(\'/dev/null\') for i in range(100)]" 2>&1 | tail -1');
    expect(opened.output).toMatch(/Too many open files/);
    const spun = await runInside(here, 'sh -c "while :; do :; done"; echo "exit $?"', { timeoutMs: 20_000 });
    expect(spun.output).toMatch(/exit (137|152)/);
  });

  test('limits cannot be raised again', async () => {
    const here = bounded({ processes: 64, fileBytes: MIB, openFiles: 64 });
    const ran = await runInside(
      here,
      'for l in "-u 9999" "-f 9999999" "-n 9999" "-f unlimited"; do (ulimit $l) && echo "raised $l"; done; true',
    );
    expect(ran.output).not.toContain('raised');
  });

  test('control groups are removed after their command, and stale ones with the next', async () => {
    const plain = box(system);
    const group = openControlGroup(`test-${groups++}`, plain.policy.system.limits);
    const stale = group.folders.map((folder) => join(folder, '..', 'drover-4194305-0'));
    for (const folder of stale) mkdirSync(folder);
    await runInside({ root: plain.root, policy: { ...plain.policy, groups: group.folders } }, 'sleep 0.05 & sleep 0.1');
    group.close();
    openControlGroup(`test-${groups++}`, plain.policy.system.limits).close();
    await expect.poll(() => [...group.folders, ...stale].filter((folder) => existsSync(folder))).toEqual([]);
  });

  test('core files are not written', async () => {
    const here = bounded({});
    await runInside(here, 'bash -c "kill -SEGV \\$\\$"');
    expect(existsSync(join(here.root, 'core'))).toBe(false);
  });
});

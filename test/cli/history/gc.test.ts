// drover gc: lists what no run needs, removes it only on consent, and never removes work.

import { existsSync, readdirSync } from 'node:fs';
import { mkdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readBatchCacheEntry, writeBatchCacheEntry } from '@drover/coordinator/batch/cache';
import { runFolder, runJournalPath } from '@drover/coordinator/run/journal';
import { Lock } from '@drover/core/journal/file/lock';
import { expect, test } from 'vitest';
import { planned, RunDesk, submits, writes } from '../../support/run/run-desk.ts';
import { sampleRun } from '../../support/run/sample-run.ts';
import { Shelf } from './shelf.ts';

const SCRIPT = planned({
  fine: { answers: [writes('fine.txt', 'fine\n'), submits('fine')] },
  // The tasks run in sequence, so that one workspace serves all.
  red: { dependsOn: ['fine'], answers: [writes('red.txt', 'red\n'), submits('red')] },
});

/** A finished run: one task landed, the gate stopped another, and the user's repository has both branches. */
async function deskAfterRun(): Promise<{ readonly desk: RunDesk; readonly run: string }> {
  const desk = await RunDesk.with(SCRIPT);
  const { end } = await desk.run(['run', 'do two things', '--gate', 'test ! -e red.txt', '--yes']);
  return { desk, run: end.run ?? '' };
}

const plain = (text: string): string =>
  `\n${text
    .replaceAll(/project-[0-9a-f]+/g, 'project')
    .replaceAll(/run_[0-9a-f]{8}/g, 'run_<id>')
    .replaceAll(/[\d.]+ k?B/g, '<size>')}`;

test('gc lists each removable item with reason and size, and removes nothing', async () => {
  const { desk } = await deskAfterRun();
  await desk.drover(['runs']); // `runs` creates the index
  const before = readdirSync(desk.home, { recursive: true });
  const { code, stdout, stderr } = await desk.drover(['gc'], { columns: 100, env: { NO_COLOR: '1' } });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(plain(stdout)).toMatchInlineSnapshot(`
    "
    Can be removed: 4 things, <size>
      a workspace of <cwd> that no run uses: 1, <size>
        workspaces/project/slots/1
      its work is in <cwd>: 3
        drover's copy of drover/run_<id>…/fine
        drover's copy of drover/run_<id>…/merged
        drover's copy of drover/run_<id>…/red

    Nothing was removed; remove it with: drover gc --yes
    "
  `);
  expect(readdirSync(desk.home, { recursive: true })).toEqual(before);
  const narrow = (await desk.drover(['gc'], { columns: 40, env: { NO_COLOR: '1' } })).stdout;
  expect(Math.max(...narrow.split('\n').map((line) => line.length))).toBeLessThanOrEqual(40);
});

test('gc asks the user: no keeps everything, yes removes it', async () => {
  const { desk, run } = await deskAfterRun();
  const no = await desk.drover(['gc'], { typed: ['maybe', 'n'], columns: 80 });
  expect([no.code, no.stderr]).toEqual([0, '\nRemove them? [y]es [n]o: '.repeat(2)]);
  expect(no.stdout).toContain('Nothing was removed');
  const yes = await desk.drover(['gc'], { typed: ['y'], columns: 80 });
  expect([yes.code, yes.stdout.trimEnd().split('\n').at(-1)]).toEqual([
    0,
    expect.stringMatching(/^Removed 4 things, /),
  ]);
  const after = await desk.drover(['gc'], { typed: [], columns: 80, env: { NO_COLOR: '1' } });
  expect(after).toEqual({ code: 0, stdout: 'Nothing to remove.\n', stderr: '' });
  expect(desk.delivered(run)['fine.txt']).toBe('fine');
  expect(desk.git('show', `drover/${run}/red:red.txt`)).toBe('red');
  expect(existsSync(runJournalPath(desk.home, run))).toBe(true);
});

test('gc that the user interrupts at its question removes nothing and exits with 130', async () => {
  const { desk } = await deskAfterRun();
  const isAsking = (_: string, stderr: string) => stderr.includes('[n]o: ');
  const cut = await desk.interrupted(['gc'], isAsking, { typed: [undefined], columns: 80 });
  expect([cut.code, cut.stdout]).toEqual([130, expect.not.stringContaining('Removed')]);
});

test('gc keeps work, and its run, if the user’s repository does not hold it', async () => {
  const { desk, run } = await deskAfterRun();
  desk.git('branch', '-q', '-D', desk.resultBranch(run), `drover/${run}/red`);
  const { code, stdout } = await desk.drover(['gc', '--older-than', '0h', '--yes', '--json']);
  const { keep, removed, stayed } = JSON.parse(stdout) as Record<string, readonly { what: string; why: string }[]>;
  expect([code, removed, stayed]).toEqual([0, true, []]);
  const branches = keep?.filter(({ why }) => why.startsWith('its work is in no branch'));
  expect(branches?.map(({ what }) => what.replace(/ in .*/, '').replace(run, 'x'))).toEqual([
    'drover/x/fine',
    'drover/x/merged',
    'drover/x/red',
  ]);
  expect(keep?.find(({ what }) => what === run)?.why).toBe('some of its work is kept');
  expect(existsSync(runJournalPath(desk.home, run))).toBe(true);
  expect((await desk.drover(['resume', run])).stderr).toContain('has ended');
});

test('gc does not remove data of a run that is live or resumable', async () => {
  const { desk, run } = await deskAfterRun();
  const lock = Lock.take(`${runJournalPath(desk.home, run)}.lock`);
  const { code, stdout } = await desk.drover(['gc', '--older-than', '0h', '--yes', '--json']);
  lock?.release();
  const { remove, keep } = JSON.parse(stdout) as Record<string, readonly { what: string; why: string }[]>;
  expect(code).toBe(0);
  expect(remove?.filter(({ what }) => what.includes(run))).toEqual([]);
  expect(keep?.filter(({ what }) => what.includes(run)).map(({ why }) => why.replace(run, 'x'))).toEqual([
    'x can be resumed',
    'x can be resumed',
    'x can be resumed',
    'somebody is at work on it',
  ]);
});

test('gc removes old runs and sessions only with --older-than, and only finished ones', async () => {
  const shelf = await Shelf.empty();
  const { events } = sampleRun({ tasks: 1 });
  const over = 'run_aaaa'.padEnd(36, '0');
  const open = 'run_bbbb'.padEnd(36, '0');
  const long = events.map((event) => ({ ...event, at: event.at.replace('2027', '2020') }));
  await shelf.keepRun(over, long);
  await shelf.keepRun(open, long.slice(0, 5));
  await shelf.keepRun(
    'run_cccc'.padEnd(36, '0'),
    long.map((event) => ({ ...event, at: new Date().toISOString() })),
  );
  await shelf.keepSession('unfinished', 'go', '2020-01-14T09:00:00.000Z');
  expect((await shelf.drover(['gc'])).stdout).toBe('Nothing to remove.\n');
  const { code, stdout } = await shelf.drover(['gc', '--older-than', '30d', '--yes']);
  expect([code, plain(stdout)]).toEqual([
    0,
    `
Can be removed: 1 thing, <size>
  over for at least 30 days: 1, <size>
    run_<id>…

Stays: 2 things
  it can be resumed: 2
    run_<id>…
    session unfinished

Removed 1 thing, <size>.
`,
  ]);
  expect(readdirSync(join(shelf.home, 'runs')).sort()).toEqual([open, 'run_cccc'.padEnd(36, '0')]);
  expect(readdirSync(shelf.home).filter((name) => name.startsWith('.gone'))).toEqual([]);
});

test('gc keeps a run of any age if its patches may be the only copy', async () => {
  const shelf = await Shelf.empty();
  const { events } = sampleRun({ tasks: 1 });
  const delivered = { deliver: 'patch', commit: 'c0', patches: ['/x/1.patch'] } as const;
  const run = 'run_dddd'.padEnd(36, '0');
  await shelf.keepRun(
    run,
    events.map((event) => ({
      ...event,
      at: event.at.replace('2027', '2020'),
      ...(event.type === 'run_end' && { delivered }),
    })) as typeof events,
  );
  const { stdout } = await shelf.drover(['gc', '--older-than', '30d', '--yes', '--json']);
  expect(JSON.parse(stdout)).toEqual({
    remove: [],
    keep: [{ what: run, why: 'its patches may be the only copy of its work' }],
    removed: false,
    stayed: [],
  });
});

test('gc keeps a run while another run with the same budget is resumable', async () => {
  const shelf = await Shelf.empty();
  const { events } = sampleRun({ tasks: 1 });
  const long = events.map((event) => ({ ...event, at: event.at.replace('2027', '2020') }));
  const [over, open] = ['run_aaaa'.padEnd(36, '0'), 'run_bbbb'.padEnd(36, '0')];
  await shelf.keepRun(over, long);
  await shelf.keepRun(open, long.slice(0, 5));
  const batch = { within: { out: '/x', names: ['a', 'b'], payers: [over, open] } };
  await writeFile(join(runFolder(shelf.home, open), 'batch.json'), JSON.stringify(batch));
  const { stdout } = await shelf.drover(['gc', '--older-than', '30d', '--yes', '--json']);
  const { remove, keep } = JSON.parse(stdout) as { remove: unknown[]; keep: { what: string; why: string }[] };
  expect(remove).toEqual([]);
  expect(keep).toContainEqual({ what: over, why: 'it shares a budget with a run that can be resumed' });
});

test('gc removes the leftovers of an interrupted removal', async () => {
  const shelf = await Shelf.empty();
  await mkdir(join(shelf.home, '.gone-1'), { recursive: true });
  await writeFile(join(shelf.home, '.gone-1', 'journal.jsonl'), 'x'.repeat(2_000));
  const { stdout } = await shelf.drover(['gc', '--yes']);
  expect(stdout).toBe(
    'Can be removed: 1 thing, 2.0 kB\n  what is left of something removed: 1, 2.0 kB\n    .gone-1\n\nRemoved 1 thing, 2.0 kB.\n',
  );
  expect(readdirSync(shelf.home)).toEqual([]);
});

test('gc removes batch results only with --older-than, and only unused ones', async () => {
  const shelf = await Shelf.empty();
  const [old, used] = ['a'.repeat(64), 'b'.repeat(64)];
  const tree = new Map();
  for (const key of [old, used]) await writeBatchCacheEntry(shelf.home, key, { v: 1, summary: '', changes: [] });
  const longAgo = new Date('2020-01-01');
  for (const key of [old, used])
    await utimes(join(shelf.home, 'cache/batch', key.slice(0, 2), `${key}.json`), longAgo, longAgo);
  expect(await readBatchCacheEntry(shelf.home, { key: used }, tree)).toBeDefined();

  expect((await shelf.drover(['gc', '--yes'])).stdout).toBe('Nothing to remove.\n');
  const { code, stdout } = await shelf.drover(['gc', '--older-than', '30d', '--yes']);
  expect([code, plain(stdout)]).toEqual([
    0,
    `
Can be removed: 1 thing, <size>
  not used for at least 30 days: 1, <size>
    1 kept result of batches

Removed 1 thing, <size>.
`,
  ]);
  expect([
    await readBatchCacheEntry(shelf.home, { key: old }, tree),
    await readBatchCacheEntry(shelf.home, { key: used }, tree),
  ]).toEqual([undefined, { v: 1, summary: '', changes: [] }]);
});

test.each(['30', 'month', '1.5d', '-1d'])('gc refuses an age of %s', async (age) => {
  const shelf = await Shelf.empty();
  expect(await shelf.drover(['gc', `--older-than=${age}`])).toEqual({
    code: 2,
    stdout: '',
    stderr: `drover: --older-than: '${age}' is not an age; write it like 12h, 30d or 8w\n`,
  });
});

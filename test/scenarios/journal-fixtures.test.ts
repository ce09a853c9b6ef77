// Journals that released versions wrote before they were killed: this version resumes every one of them.

import { readdirSync, statSync } from 'node:fs';
import { runJournalPath } from '@drover/coordinator/run/journal';
import { describe, expect, test } from 'vitest';
import { countReads } from '../support/process/reads.ts';
import { statuses } from '../support/run/run-desk.ts';
import { FIXTURES, restoreFixture, RUN_SCRIPT, SESSION_SCRIPT, writeFixture } from '../support/run/journal-fixture.ts';

// Set once per release, to its version.
const version = process.env['DROVER_WRITE_JOURNALS'];

test.runIf(version !== undefined)('drover writes a session and a run, and is killed', async () => {
  await writeFixture(version ?? '');
});

const FLAGS = ['--sandbox', 'off', '--yes'];

describe.each(readdirSync(FIXTURES))('of %s', (file) => {
  test('resume continues the killed session and repeats no call', async () => {
    const desk = await restoreFixture(file, SESSION_SCRIPT);
    const { code, stdout } = await desk.drover(['resume', 'fixture', ...FLAGS]);
    expect([code, desk.server.requests.length, desk.server.rejections]).toEqual([0, 1, 0]);
    expect(stdout).toContain('UNCERTAIN: drover was stopped while this ran');
    expect(stdout).toContain('The session is done.');
    expect(await desk.read('by-session.txt')).toBe('once\n');
  });

  test('resume continues the killed run and buys no finished work again', async () => {
    const desk = await restoreFixture(file, RUN_SCRIPT);
    const [id = ''] = readdirSync(`${desk.home}/runs`);
    const { code, end } = await desk.run(['resume', id, ...FLAGS]);
    expect([code, statuses(end), end.answer]).toEqual([0, { quick: 'landed', slow: 'landed' }, 'All is done.']);
    expect(desk.server.requests.map(({ agent }) => agent)).toEqual(['slow', 'default']);
    expect(desk.delivered(id)).toEqual({ 'a.txt': 'one', 'quick.txt': 'quick', 'slow.txt': 'slow' });
  });

  test('resume reads the journal of the killed run once', async () => {
    const desk = await restoreFixture(file, RUN_SCRIPT);
    const [id = ''] = readdirSync(`${desk.home}/runs`);
    const journal = runJournalPath(desk.home, id);
    const size = statSync(journal).size;
    const read = countReads(journal);
    expect((await desk.drover(['resume', id, ...FLAGS])).code).toBe(0);
    expect(read()).toBe(size);
  });
});

// AGENTS.md and CLAUDE.md: those that cannot be used are left out with a warning; those that change are read again.

import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agentOn, type Executed } from '../support/agent.ts';
import { HANG_MS, LARGE_FILE, LINK_OUT, ODD_FILES } from '../support/data/odd-files.ts';

const ALL_ODD = [...ODD_FILES, LARGE_FILE, LINK_OUT];

const warningsOf = ({ events }: Executed) => events.flatMap((event) => (event.type === 'warning' ? event.message : []));

const warning = (path: string, problem: string) =>
  expect.stringMatching(`^${RegExp.escape(`${path} ${problem}, so its instructions are left out; `)}\\w`);

test.each(ALL_ODD)('$name as AGENTS.md is left out with a warning', { timeout: HANG_MS }, async ({ make, problem }) => {
  const { run, server, cwd } = await agentOn({ answers: [{ text: 'ok' }] });
  await mkdir(join(cwd, '.git'));
  await make(join(cwd, 'AGENTS.md'));
  await writeFile(join(cwd, 'CLAUDE.md'), 'Use tabs.');
  const ran = await run('go');
  expect([ran.result.outcome, warningsOf(ran)]).toEqual([{ status: 'done' }, [warning('AGENTS.md', problem)]]);
  const text = JSON.stringify((server.requests[0]?.body as { system: object } | undefined)?.system);
  expect([text.includes('(CLAUDE.md):\\nUse tabs.'), text.includes('AGENTS.md')]).toEqual([true, false]);
});

test.each(ALL_ODD)('$name as a folder’s CLAUDE.md is left out', { timeout: HANG_MS }, async ({ make, problem }) => {
  const read = { calls: [{ name: 'read', args: { path: 'src/a.txt' } }] };
  const { run, cwd } = await agentOn({ answers: [read, read, { text: 'ok' }] });
  await mkdir(join(cwd, 'src'));
  await make(join(cwd, 'src/CLAUDE.md'));
  await writeFile(join(cwd, 'src/a.txt'), 'text');
  const ran = await run('go');
  expect([ran.result.outcome, warningsOf(ran)]).toEqual([{ status: 'done' }, [warning('src/CLAUDE.md', problem)]]);
  const results = ran.result.messages.flatMap((message) => (message.role === 'tool' ? message.results : []));
  expect(results.map(({ output }) => output.includes('Instructions'))).toEqual([false, false]);
});

test('a CLAUDE.md that links to AGENTS.md is not a problem', async () => {
  const { run, server, cwd } = await agentOn({ answers: [{ text: 'ok' }] });
  await writeFile(join(cwd, 'AGENTS.md'), 'Use tabs.');
  await symlink('AGENTS.md', join(cwd, 'CLAUDE.md'));
  expect(warningsOf(await run('go'))).toEqual([]);
  const text = JSON.stringify((server.requests[0]?.body as { system: object } | undefined)?.system);
  expect(text.match(/Use tabs\./g)).toHaveLength(1);
});

test('a session whose prompt comes from its run repeats no warning', async () => {
  const { run, cwd } = await agentOn({ answers: [{ text: 'ok' }] }, { system: 'Do the task.' });
  await mkdir(join(cwd, 'AGENTS.md'));
  expect(warningsOf(await run('go'))).toEqual([]);
});

test('instructions that change between two messages are read again, and told once', async () => {
  const read = { calls: [{ name: 'read', args: { path: 'src/a.txt' } }] };
  const { run, server, session, cwd } = await agentOn({
    answers: [read, { text: 'ok' }, read, { text: 'ok' }, read, { text: 'ok' }],
  });
  await mkdir(join(cwd, 'src'));
  await writeFile(join(cwd, 'src/a.txt'), 'text');
  await writeFile(join(cwd, 'AGENTS.md'), 'Use tabs.');
  await writeFile(join(cwd, 'src/AGENTS.md'), 'Deep down, be brief.');
  await run('one');
  await writeFile(join(cwd, 'AGENTS.md'), 'Use spaces.');
  await run('two');
  await writeFile(join(cwd, 'src/AGENTS.md'), 'Deep down, be long.');
  await run('three');
  const systems = [0, 2, 4].map((at) => JSON.stringify(server.requests[at]?.body ?? {}));
  expect(systems.map((text) => [text.includes('Use tabs.'), text.includes('Use spaces.')])).toEqual([
    [true, false],
    [false, true],
    [false, true],
  ]);
  const results = session.conversation.messages.flatMap((message) => (message.role === 'tool' ? message.results : []));
  expect(results.map(({ output }) => /be (brief|long)/.exec(output)?.[1])).toEqual(['brief', undefined, 'long']);
});

test('an unusable file is warned of once', async () => {
  const { run, cwd } = await agentOn({ answers: [{ text: 'ok' }, { text: 'ok' }] });
  await mkdir(join(cwd, 'AGENTS.md'));
  expect([warningsOf(await run('one')).length, warningsOf(await run('two')).length]).toEqual([1, 0]);
});

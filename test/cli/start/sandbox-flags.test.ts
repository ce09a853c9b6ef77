// --sandbox, --net and --writable: values refused before anything is spent, and machines without a sandbox.

import { existsSync } from 'node:fs';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { findProgramOn } from '@drover/core/tools/process/program';
import { calls, planned, RunDesk, says, statuses } from '../../support/run/run-desk.ts';
import { drover, FakeIo, temporaryFolder } from '../fake-io.ts';
import { main } from '../../../bin/drover.ts';

const INSTALL = 'install it (apt install bubblewrap, dnf install bubblewrap, pacman -S bubblewrap)';
const MISSING = 'bubblewrap (bwrap) is not installed';

/** A PATH with git, bash and coreutils, and without bubblewrap. */
async function pathWithoutBubblewrap(): Promise<string> {
  const folder = await temporaryFolder();
  for (const name of ['git', 'bash', 'sh', 'true', 'touch', 'node']) {
    const file = findProgramOn(process.env['PATH'] ?? '', name);
    if (file !== undefined) await symlink(file, join(folder, name));
  }
  return folder;
}

/** A run of one task whose worker runs a command. */
function commanding(command: string): Promise<RunDesk> {
  return RunDesk.with(planned({ one: { answers: [calls('shell', { command }), says('I am done')] } }));
}

test.each([
  [['--sandbox', 'on'], "--sandbox: 'on' is none of auto, required, off"],
  [['--net', 'https://packages.example.com'], '--net: "https://packages.example.com" is a URL or a path, not a host'],
  [['--net', 'a b'], '--net: "a b"'],
  [['--net', '*'], '--net: "*"'],
  [['--writable', 'nowhere'], '/nowhere: there is no such path; make it first'],
  [['--writable', '.'], 'it is, or holds, the folder that is worked on'],
  [['--writable', '..'], 'it is, or holds, the folder that is worked on'],
  [['--writable', '../home'], "it would open drover's own state in"],
  [['--writable', '/proc'], 'it is a folder of the system'],
  [['--writable', '/etc'], 'it is a folder of the system'],
  [['--writable', '.git'], 'it is inside the folder that is worked on'],
])('%j is refused before anything is spent', async (args, sentence) => {
  const desk = await commanding('true');
  await mkdir(desk.home, { recursive: true });
  const { code, stdout, stderr } = await desk.drover(['run', 'go', ...args]);
  expect([code, stdout, desk.server.requests]).toEqual([2, '', []]);
  expect(stderr).toContain(sentence);
});

test.each([
  ['a headless run refuses every command and says why once', [], 8, 'every command is asked about'],
  ['--yes says that commands run in the open', ['--yes'], 0, 'commands run in the open'],
] as const)('without a sandbox %s', async (_, flags, code, how) => {
  const desk = await commanding('true');
  const PATH = await pathWithoutBubblewrap();
  const fake = new FakeIo({
    cwd: desk.repository,
    env: { PATH, DROVER_HOME: desk.home, ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: desk.server.url },
  });
  const ended = await main(['run', 'go', '--workers', '0', '--model', 'anthropic/any', ...flags], fake.io);
  expect([ended, fake.notices]).toEqual([code, [`drover: no sandbox: ${MISSING}, so ${how}; ${INSTALL}\n`]]);
});

test('without a sandbox a run in CI exits 2 before anything is spent', async () => {
  const desk = await commanding('true');
  const env = { PATH: await pathWithoutBubblewrap(), CI: 'true' };
  const { code, stderr } = await desk.drover(['run', 'go'], { env });
  expect([code, desk.server.requests]).toEqual([2, []]);
  expect(stderr).toBe(
    `drover: commands must be contained (--sandbox required, the default in CI), and there is no sandbox: ${MISSING}; ${INSTALL}; --sandbox off runs commands in the open instead, once you or a rule allow them\n`,
  );
});

test('without a sandbox doctor notes it, and fails where it is required', async () => {
  const desk = await commanding('true');
  const PATH = await pathWithoutBubblewrap();
  const found = async (env: Record<string, string>) => {
    const { stdout } = await desk.drover(['doctor', '--json'], { env: { PATH, ...env } });
    const { checks } = JSON.parse(stdout) as { checks: { check: string; state: string; says: string }[] };
    return checks.flatMap(({ check, state, says: words }) => (check === 'sandbox' ? [[state, words]] : []));
  };
  expect([await found({}), await found({ CI: 'true' })]).toEqual([
    [['note', `${MISSING}, so every command of an agent is asked about`]],
    [['bad', `${MISSING}, and commands must be contained`]],
  ]);
});

test('--sandbox off asks about every command, and journal and report say so', async () => {
  const desk = await commanding('touch x');
  const { code, events, end } = await desk.run(['run', 'go', '--sandbox', 'off', '--yes']);
  expect([code, statuses(end)]).toEqual([0, { one: 'landed' }]);
  expect(events.find(({ type }) => type === 'run_start')).toMatchObject({
    sandbox: { mode: 'off', used: 'off', net: [], writable: [] },
  });
  expect((await desk.drover(['show', end.run ?? ''])).stdout).toContain('Sandbox: off; commands ran in the open');
  const asked = await commanding('touch x');
  expect((await asked.run(['run', 'go', '--sandbox', 'off'])).code).toBe(8);
});

test('a git that a command could have planted in the project is not used', async () => {
  const look = calls('git', { action: 'status' });
  const desk = await RunDesk.with({ answers: [look, calls('shell', { command: 'git --version' }), says('done')] });
  const planted = join(desk.repository, '.venv', 'bin');
  const link = join(desk.folder, 'bin');
  await mkdir(planted, { recursive: true });
  await symlink(planted, link);
  await writeFile(join(planted, 'git'), `#!/bin/sh\ntouch ${desk.folder}/taken\n`, { mode: 0o755 });
  const env = { PATH: `${planted}:${link}:${process.env['PATH'] ?? ''}`, HOME: desk.folder };
  const { code } = await desk.drover(['exec', 'look', '--model', 'anthropic/scripted'], { env });
  expect([code, existsSync(join(desk.folder, 'taken'))]).toEqual([0, false]);
});

test('a bubblewrap that a command could have planted in the project is not used', async () => {
  const desk = await commanding('true');
  const planted = join(desk.repository, 'node_modules', '.bin');
  await mkdir(planted, { recursive: true });
  await writeFile(join(planted, 'bwrap'), `#!/bin/sh\ntouch ${desk.folder}/taken\n`, { mode: 0o755 });
  const env = { PATH: `${planted}:${await pathWithoutBubblewrap()}` };
  const { code, stderr } = await desk.drover(['run', 'go', '--sandbox', 'required'], { env });
  expect([code, existsSync(join(desk.folder, 'taken'))]).toEqual([2, false]);
  expect(stderr).toContain(MISSING);
});

test('a state folder that is the project is refused with a reason', async () => {
  const { code, stderr } = await drover(['exec', 'go', '--model', 'anthropic/any'], {
    cwd: await temporaryFolder(),
    env: { HOME: await temporaryFolder(), DROVER_HOME: '.', ANTHROPIC_API_KEY: 'k' },
  });
  expect(code).toBe(2);
  expect(stderr).toContain('set DROVER_HOME to another one');
});

test('a state folder in /proc is refused at once', async () => {
  const env = { DROVER_HOME: '/proc/x', ANTHROPIC_API_KEY: 'k' };
  const { code, stderr } = await drover(['exec', 'go', '--model', 'anthropic/any'], { env });
  expect([code, stderr]).toEqual([
    2,
    'drover: cannot write to /proc/x (ENOENT); set DROVER_HOME to a folder that can be written\n',
  ]);
});

test('a folder that holds the home is not contained, and required refuses it', async () => {
  const home = join(await temporaryFolder(), 'home');
  await mkdir(home);
  const { code, stderr } = await drover(['exec', 'go', '--model', 'anthropic/any', '--sandbox', 'required'], {
    cwd: dirname(home),
    env: { HOME: home, DROVER_HOME: join(home, 'state'), ANTHROPIC_API_KEY: 'k' },
  });
  expect(code).toBe(2);
  expect(stderr).toContain('there is no sandbox');
});

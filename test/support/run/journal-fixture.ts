// Fixtures of journals: a session and a run that a version of drover wrote before it was killed. Later versions must
// resume them.
//
// A fixture is one JSON file: every file of a project and of a DROVER_HOME by its path. The folder that held both is
// `<folder>` in texts. With DROVER_WRITE_JOURNALS=<version>, test/scenarios/journal-fixtures.test.ts writes one.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { openRepository } from '@drover/coordinator/git/repository';
import { openStore } from '@drover/coordinator/store/store';
import { sealJournalRecord } from '@drover/core/journal/file/format';
import type { JsonObject } from '@drover/protocol/json';
import type { Script } from '@drover/rehearsal/script';
import { startRehearsal } from '@drover/rehearsal/server';
import { onTestFinished } from 'vitest';
import { LAUNCHER } from '../../cli/program.ts';
import { temporaryFolder } from '../workspace.ts';
import { calls, planned, RunDesk, says, submits, writes } from './run-desk.ts';

export const FIXTURES = 'test/recordings/journals';

const MODEL = ['--model', 'anthropic/scripted', '--sandbox', 'off', '--yes', '--json'];
const HOLD = 'sleep 60';

/** The session writes a file, and is killed in its second call. */
export const SESSION_SCRIPT: Script = {
  order: 'conversation',
  answers: [writes('by-session.txt', 'once\n'), calls('shell', { command: HOLD }), says('The session is done.')],
};

/** One task of the run has landed when the run is killed in a call of the other. */
export const RUN_SCRIPT: Script = planned({
  quick: { answers: [writes('quick.txt', 'quick\n'), submits('quick')] },
  slow: {
    answers: [writes('slow.txt', 'slow\n'), calls('shell', { command: HOLD }), submits('slow')],
  },
});

type Stored = { readonly text: string } | { readonly base64: string } | { readonly link: string };

type Fixture = { readonly workspaces: string; readonly files: Readonly<Record<string, Stored>> };

/** Runs a session and a run, kills both, and keeps all files. */
export async function writeFixture(version: string): Promise<void> {
  const folder = await temporaryFolder();
  const server = await startRehearsal(RUN_SCRIPT);
  const desk = await RunDesk.in(folder, server, { 'a.txt': 'one\n' });
  const other = await startRehearsal(SESSION_SCRIPT);
  await killedIn(desk, other.url, ['exec', 'write a file', '--session', 'fixture', ...MODEL]);
  await killedIn(desk, server.url, ['run', 'do two things', '--workers', '2', ...MODEL], '"outcome":"landed"');
  await Promise.all([server.close(), other.close()]);
  const [workspaces = ''] = readdirSync(join(desk.home, 'workspaces'));
  const files = Object.fromEntries(pathsIn(folder).map((path) => [path, pack(folder, path)]));
  mkdirSync(FIXTURES, { recursive: true });
  writeFileSync(join(FIXTURES, `${version}.json`), `${JSON.stringify({ workspaces, files }, undefined, 1)}\n`);
}

/** Runs drover until it waits in the blocking call and has printed `also`; then kills it and its children. */
async function killedIn(desk: RunDesk, url: string, argv: readonly string[], also = ''): Promise<void> {
  const env = {
    PATH: process.env['PATH'],
    HOME: desk.folder,
    DROVER_HOME: desk.home,
    ANTHROPIC_API_KEY: 'k',
    ANTHROPIC_BASE_URL: url,
  };
  const child = spawn(process.execPath, [LAUNCHER, ...argv], {
    cwd: desk.repository,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exit = once(child, 'exit');
  let printed = '';
  for await (const chunk of child.stdout) {
    printed += String(chunk);
    if (printed.includes(`shell: ${HOLD}`) && printed.includes(also)) break;
  }
  if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
  await exit;
  if (child.signalCode !== 'SIGKILL') throw new Error(`drover ended before it could be killed: ${printed}`);
}

/** Writes a fixture's files into a new folder, as if that version of drover had worked there. */
export async function restoreFixture(file: string, script: Script): Promise<RunDesk> {
  const { workspaces, files } = JSON.parse(readFileSync(join(FIXTURES, file), 'utf8')) as Fixture;
  const server = await startRehearsal(script);
  onTestFinished(() => server.close());
  const desk = RunDesk.over(await temporaryFolder(), server);
  const restore = (prefix: string, rename: (text: string) => string): void => {
    for (const [path, content] of Object.entries(files)) {
      if (path.startsWith(prefix)) unpack(join(desk.folder, rename(path)), content, rename);
    }
  };
  restore('project/', (text) => text.replaceAll('<folder>', desk.folder));
  // This folder's name depends on the project's path.
  const env = { PATH: process.env['PATH'] ?? '', HOME: desk.folder };
  const repository = await openRepository(desk.repository, env);
  const { folder } = await openStore({ home: desk.home, repository, env });
  restore('home/', (text) => text.replaceAll('<folder>', desk.folder).replaceAll(workspaces, basename(folder)));
  return desk;
}

function unpack(path: string, content: Stored, rename: (text: string) => string): void {
  mkdirSync(dirname(path), { recursive: true });
  if ('link' in content) symlinkSync(rename(content.link), path);
  else if ('base64' in content) writeFileSync(path, Buffer.from(content.base64, 'base64'));
  else writeFileSync(path, path.endsWith('journal.jsonl') ? sealed(content.text, rename) : rename(content.text));
}

/** A journal with other paths in it, and a fresh seal for every record. */
function sealed(journal: string, rename: (text: string) => string): string {
  let sum = '';
  const lines = journal.split('\n').filter(Boolean);
  return lines
    .map((line) => {
      const { sum: _, ...record } = JSON.parse(rename(line)) as JsonObject;
      const next = sealJournalRecord(record, sum);
      sum = next.sum;
      return `${next.text}\n`;
    })
    .join('');
}

function pack(folder: string, path: string): Stored {
  const place = join(folder, path);
  if (lstatSync(place).isSymbolicLink()) return { link: readlinkSync(place).replaceAll(folder, '<folder>') };
  const bytes = readFileSync(place);
  const text = bytes.toString();
  if (!Buffer.from(text).equals(bytes)) return { base64: bytes.toString('base64') };
  return { text: text.replaceAll(folder, '<folder>') };
}

// Locks belong to processes; the other files are not needed to resume.
const LEFT_OUT = /(^|\/)(hooks|logs|description|COMMIT_EDITMSG|.*\.lock(\.owner|-journal)?)$/;

function pathsIn(folder: string, within = ''): readonly string[] {
  return readdirSync(join(folder, within), { withFileTypes: true }).flatMap((entry) => {
    const path = join(within, entry.name);
    if (LEFT_OUT.test(path)) return [];
    return entry.isDirectory() ? pathsIn(folder, path) : entry.isFile() || entry.isSymbolicLink() ? [path] : [];
  });
}

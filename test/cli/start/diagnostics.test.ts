// DROVER_LOG: each level prints its own lines and more serious ones.

import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { journalPath } from '@drover/core/journal/session-journal';
import { expect, test } from 'vitest';
import { Desk } from '../desk.ts';
import { drover } from '../fake-io.ts';
import { desk } from '../serve/served.ts';

const SCRIPT = 'answers:\n  - text: Done.\nloop: true\n';
const ARGS = ['exec', 'go', '--session', 's', '--model', 'rehearsal/script.yaml', '--view', 'silent'];

type Line = { readonly level: number; readonly msg: string; readonly session?: string };

/** The desk's folder is its home, where no sandbox is possible. */
async function linesOf(desk: Desk, level: string): Promise<readonly Line[]> {
  const { code, stderr } = await desk.run(ARGS, { env: { DROVER_LOG: level } });
  expect(code).toBe(0);
  const lines = stderr.split('\n').filter((line) => line.startsWith('{'));
  return lines.map((line) => JSON.parse(line) as Line);
}

async function diagnosed(desk: Desk, level: string): Promise<readonly string[]> {
  return (await linesOf(desk, level)).map(({ level: number, msg }) => `${number} ${msg}`);
}

const INFO = ['30 session opened', '30 turn ended'];
const WARN = ['40 there is no sandbox'];

test.each([
  ['error', []],
  ['warn', WARN],
  ['info', [...WARN, ...INFO]],
  ['debug', [...WARN, '30 session opened', '20 request sent', '20 request answered', '30 turn ended']],
])('DROVER_LOG=%s prints this level and more serious ones', async (level, lines) => {
  expect(await diagnosed(await Desk.with(SCRIPT), level)).toEqual(lines);
});

test('a repaired journal logs a warning', async () => {
  const desk = await Desk.with(SCRIPT);
  await desk.run(ARGS);
  await appendFile(journalPath(desk.home, 's'), '{"torn');
  expect(await diagnosed(desk, 'warn')).toEqual([
    '40 a journal was repaired: 6 bytes of an unfinished record were cut off',
    ...WARN,
  ]);
  expect(await diagnosed(desk, 'warn')).toEqual(WARN);
});

const KEY = 'a-test-key-0123456789';
const WORKING = `
order: conversation
answers:
  - {calls: [{name: write, args: {path: ${KEY}.txt, content: one}}, {name: write, args: {path: ../b, content: two}}]}
  - {text: Done.}
`;

function debugLines(stderr: string): readonly (Line & Record<string, unknown>)[] {
  const lines = stderr.split('\n').filter((line) => line.startsWith('{"level":20'));
  return lines.map((line) => JSON.parse(line) as Line & Record<string, unknown>);
}

test('DROVER_LOG=debug prints requests and calls with figures, and no secrets', async () => {
  const desk = await Desk.with(WORKING);
  const { stderr } = await desk.run(ARGS, { env: { DROVER_LOG: 'debug', ANTHROPIC_API_KEY: KEY } });
  const told = debugLines(stderr);
  const gists = told.map(({ msg, summary = '', ms }) => [msg, summary, typeof ms].join(' | '));
  // The journal is written in batches concurrently with requests, so only the order of its own lines is fixed.
  expect(gists.toSorted()).toEqual([
    'call begun | write: [redacted:value].txt | undefined',
    'call ended | write: [redacted:value].txt | number',
    'call refused | write: ../b | undefined',
    'permission asked | write: ../b | undefined',
    'permission decided |  | undefined',
    'request answered |  | number',
    'request answered |  | number',
    'request sent |  | undefined',
    'request sent |  | undefined',
  ]);
  const answered = told.find(({ msg }) => msg === 'request answered');
  const count: unknown = expect.any(Number);
  expect(answered).toMatchObject({ model: 'rehearsal/script.yaml', stop: 'tool_calls', input: count, output: count });
  expect(stderr).not.toContain(KEY);
});

test('DROVER_LOG=debug prints tasks and merges of a run with their commits', async () => {
  const cwd = await desk();
  const args = ['run', 'one file', '--workers', '1', '--model', 'rehearsal/../script.yaml', '--yes'];
  const { stderr } = await drover(args, { cwd: join(cwd, 'project'), env: { HOME: cwd, DROVER_LOG: 'debug' } });
  const commit: unknown = expect.stringMatching(/^[0-9a-f]{40}$/);
  expect(debugLines(stderr)).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ msg: 'task begun', task: 'one', base: commit }),
      expect.objectContaining({ msg: 'task ended', task: 'one', status: 'finished', commit, files: 1 }),
      expect.objectContaining({ msg: 'merge ended', task: 'one', outcome: 'landed', commit }),
    ]),
  );
});

test('every log line about a session names it', async () => {
  const desk = await Desk.with(SCRIPT);
  await desk.run(ARGS);
  await appendFile(journalPath(desk.home, 's'), '{"torn');
  const lines = await linesOf(desk, 'info');
  expect(lines.map(({ session }) => session)).toEqual(['s', 's', 's', 's']);
});

// --list and --dry-run: the tasks of a spec, without a request and without writing a file.

import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { BatchDesk, noisyFiles, SPEC, tidying } from '../support/run/batch-desk.ts';

const FILES = {
  ...noisyFiles(3),
  'src/file1.test.ts': 'console.log(0);\n',
  'src/quiet.ts': 'log(1);\n',
  'lib/[id]/page.ts': 'console.log(4);\n',
};

async function listed(
  select: string,
  given: { readonly stdin?: string; readonly more?: string } = {},
): Promise<readonly string[]> {
  const spec = SPEC.replace(/select:[^]*?task:/, `select:\n  ${select.replaceAll('\n', '\n  ')}\ntask:`);
  const batch = await BatchDesk.with(tidying(), FILES, spec + (given.more ?? ''));
  await writeFile(join(batch.desk.folder, 'list.txt'), './src/file2.ts\nsrc/quiet.ts\n');
  await batch.desk.write({ 'src/file3.ts': 'console.log(33);\n', 'src/new.ts': 'console.log(5);\n' });
  batch.commit();
  const { code, stdout, stderr } = await batch.drover(
    ['--list', '--json'],
    given.stdin === undefined ? {} : { stdin: given.stdin },
  );
  expect([code, stderr, batch.requests]).toEqual([0, '', 0]);
  const rows = stdout.split('\n').filter((line) => line !== '');
  return rows.map((row) => (JSON.parse(row) as { readonly files: readonly string[] }).files.join(' '));
}

const NUL = `command: 'printf "src/file1.ts\\0src/file3.ts\\0"'`;
const JSONL = `command: |\n  echo '{"files": ["src/file1.ts", "src/file2.ts"], "id": "both"}'\n  echo '"src/file3.ts"'`;

test.each<[string, string, readonly string[]]>([
  [
    'globs',
    'files: ["src/*.ts", "lib/**"]\nexclude: ["**/*.test.ts"]',
    ['lib/[id]/page.ts', 'src/file1.ts', 'src/file2.ts', 'src/file3.ts', 'src/new.ts', 'src/quiet.ts'],
  ],
  [
    'what they contain',
    'files: ["**/*.ts"]\ncontains: "^console.log\\\\([34]+\\\\);$"',
    ['lib/[id]/page.ts', 'src/file3.ts'],
  ],
  ['what has changed in a range', 'diff: HEAD~1...HEAD', ['src/file3.ts', 'src/new.ts']],
  ['a range, and globs', 'diff: HEAD~1...HEAD\nfiles: ["src/n*.ts"]', ['src/new.ts']],
  ['a list in a file', 'files: list.txt', ['src/file2.ts', 'src/quiet.ts']],
  ['what a command prints, ended by NUL', NUL, ['src/file1.ts', 'src/file3.ts']],
  ['what a command prints, as JSON lines', JSONL, ['src/file1.ts src/file2.ts', 'src/file3.ts']],
])('files are selected by %s', async (_, select, expected) => {
  expect(await listed(select)).toEqual(expected);
});

test('a list of files is read from standard input', async () => {
  expect(await listed('files: "-"', { stdin: 'src/file1.ts\0src/new.ts\0' })).toEqual(['src/file1.ts', 'src/new.ts']);
});

test('files are grouped as the spec says', async () => {
  expect(await listed('files: ["**/*.ts"]', { more: 'group: { by: directory, max: 3 }\n' })).toEqual([
    'lib/[id]/page.ts',
    'src/file1.test.ts src/file1.ts src/file2.ts',
    'src/file3.ts src/new.ts src/quiet.ts',
  ]);
});

test('items of a command bring their own ids and variables', async () => {
  const spec = `
version: 1
select: { command: 'echo "{\\"path\\": \\"src/file1.ts\\", \\"id\\": \\"one\\", \\"vars\\": {\\"from\\": \\"a\\"}}"' }
vars: { to: b }
task: { title: "{{ vars.from }} to {{ vars.to }}", prompt: "{{ vars.from }}" }
`;
  const batch = await BatchDesk.with(tidying(), FILES, spec);
  expect((await batch.drover(['--list'])).stdout).toBe('one  a to b\n');
  await batch.spec(spec.replace('prompt: "{{ vars.from }}"', 'prompt: "{{ vars.form }}"'));
  const { code, stderr } = await batch.drover(['--list']);
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining("../spec.yaml:5:60: there is no 'vars.form' for src/file1.ts"),
  ]);
});

test('--list prints one line per task, and a shard prints only its own', async () => {
  const batch = await BatchDesk.with(tidying(), noisyFiles(3));
  expect((await batch.drover(['--list'])).stdout).toBe(
    'src-file1.ts  Logging in src/file1.ts\nsrc-file2.ts  Logging in src/file2.ts\nsrc-file3.ts  Logging in src/file3.ts\n',
  );
  const shards = await Promise.all([1, 2].map((at) => batch.drover(['--list', '--shard', `${at}/2`])));
  expect(shards.map(({ stdout }) => stdout.split('\n').length - 1).toSorted((a, b) => a - b)).toEqual([1, 2]);
});

test('--dry-run shows tasks, overlaps, tokens and worst case without any request', async () => {
  const command = `{ command: "echo '{\\"files\\": [\\"src/file1.ts\\"], \\"id\\": \\"a\\"}'; echo '{\\"files\\": [\\"src/file1.ts\\"], \\"id\\": \\"b\\"}'" }`;
  const spec = `version: 1\nname: two\nselect: ${command}\nlimits: { perTask: 20ktok, budget: 1mtok, timeout: 45m }\ngates: ["node --test"]\ntask: { title: "T", prompt: "Do it." }\n`;
  const batch = await BatchDesk.with(tidying(), FILES, spec);
  const { code, stdout } = await batch.drover(['--dry-run']);
  expect(code).toBe(0);
  expect(stdout.replace(/at [0-9a-f]{12}/, 'at …')).toBe(`Dry run: nothing is changed. This would run:
  batch       two (../spec.yaml)
  repository  <cwd> at …
  tasks       2
  workers     one, in this thread
  gates       node --test
  model       anthropic/scripted
  prompts     4 tokens, 2 the longest
  at most     40,000 tokens (2 times the limit of a task)
  time        at most 45 m 00 s

In the order in which they would land:
  a       2 tokens  T
  b       2 tokens  T

Tasks that change files which others change too (1):
  b waits for a
`);
  expect([batch.requests, existsSync(batch.out), existsSync(join(batch.desk.home, 'runs'))]).toEqual([0, false, false]);
});

test('--dry-run prints the most that a token budget can cost', async () => {
  const batch = await BatchDesk.with(tidying(), noisyFiles(2));
  const atMost = async (...more: readonly string[]) =>
    / {2}at most +(.*)\n/.exec((await batch.drover(['--dry-run', ...more])).stdout)?.[1];
  // Output costs $75 per million tokens.
  const model = ['--model', 'anthropic/claude-opus-4-1', '--fresh'];
  expect(await atMost(...model, '--budget', '200ktok')).toBe('200,000 tokens, at most $15.00 (the budget)');
  expect(await atMost('--budget', '200ktok')).toBe('200,000 tokens (the budget)');
  const { stdout } = await batch.desk.drover(['run', 'it', '--dry-run', ...model.slice(0, 2), '--budget', '200ktok']);
  expect(stdout).toContain('budget      200000 tokens, at most $15.00\n');
});

test('--dry-run marks cached tasks unless --fresh is given', async () => {
  const batch = await BatchDesk.with(tidying(), noisyFiles(3));
  await batch.run();
  await batch.desk.write({ 'src/file2.ts': 'console.log(22);\n' });
  batch.commit();
  const foreseen = async (...more: readonly string[]) =>
    /tasks .*\n(?: {2}known.*\n)?/.exec((await batch.drover(['--dry-run', ...more])).stdout)?.[0];
  expect(await foreseen()).toBe('tasks       3\n  known       2 of them from earlier runs, at no cost\n');
  expect(await foreseen('--fresh')).toBe('tasks       3\n');
});

test('--dry-run needs a model but no key, and reports mistakes first', async () => {
  const batch = await BatchDesk.with(tidying(), noisyFiles(1));
  const keyless = { env: { ANTHROPIC_API_KEY: '' } };
  expect((await batch.drover(['--dry-run'], keyless)).code).toBe(0);
  expect((await batch.drover([], keyless)).stderr).toContain('anthropic needs a key');
  const { code, stdout, stderr } = await batch.drover(['--dry-run', '--model', 'nobody/x']);
  expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining("there is no provider 'nobody'")]);
});

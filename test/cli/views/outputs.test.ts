// Every output of drover, fed with keys, escape sequences, bidi marks and CI commands: none of them comes out of any
// command or file.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startRehearsal } from '@drover/rehearsal/server';
import { expect, onTestFinished, test } from 'vitest';
import { fill } from '../../support/data/planted-secrets.ts';
import { planned, RunDesk, submits, writes } from '../../support/run/run-desk.ts';
import { drover, temporaryFolder } from '../fake-io.ts';

const KEY = `own-${fill('abcdefghijklmnopqrstuvwxyz0123456789', 36, 'outputs')}`;
const NASTY = [
  `planted: the key is ${KEY} \u001B[2Jcleared\u009B1A \u202Ebackwards\u2066 \u200Fmark`,
  '::error::planted',
  '  ::add-mask::planted',
  '##[error]planted',
  'see ##vso[task.complete result=Failed]planted',
].join('\n');
const ENV = { ANTHROPIC_API_KEY: KEY, MY_TOKEN: KEY, CI: 'true', GITHUB_ACTIONS: 'true', TF_BUILD: 'True' };

/** Every text that could deceive a reader, a terminal or a CI runner. */
function harm(text: string): readonly string[] {
  const found: [string, RegExp][] = [
    ['the key', new RegExp(KEY)],
    ['a control character', /(?![\n\t])\p{Cc}|[\u200E\u200F\u202A-\u202E\u2066-\u2069]/u],
    ['a command of GitHub', /^[^!-~\n]*::(?:error|add-mask)::planted/m],
    ['a command of a runner', /##\w*\[/],
  ];
  return found.filter(([, pattern]) => pattern.test(text)).map(([name]) => name);
}

/** Each output by its name, with its faults; every output mentions the work. */
function judged(outputs: Readonly<Record<string, string>>): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(
    Object.entries(outputs).map(([name, text]) => [name, text.includes('planted') ? harm(text) : ['nothing is told']]),
  );
}

const fine = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, []]));

test('a run writes its log, result, reports and patches, and every later view of it', async () => {
  const desk = await RunDesk.with(
    planned({
      good: { title: NASTY, answers: [writes('good.txt', `${KEY}\n`), submits(NASTY)] },
      bad: { title: NASTY, answers: [writes('bad.txt', 'x\n'), { text: NASTY }] },
    }),
  );
  const read = (name: string) => readFile(join(desk.folder, name), 'utf8');
  const gate = `if test -e bad.txt; then printf '%s\\n' "$(cat "${join(desk.folder, 'nasty.txt')}")"; exit 1; fi`;
  await writeFile(join(desk.folder, 'nasty.txt'), NASTY);
  const run = ['run', NASTY, '--yes', '--sandbox', 'auto', '--workers', '0', '--gate', gate];
  const files = ['--result', '../result.json', '--junit', '../junit.xml', '--summary', '../summary.md'];
  const lines = await desk.drover([...run, ...files], { env: ENV });
  const json = await desk.drover([...run, '--json'], { env: ENV });
  const { run: id } = JSON.parse(await read('result.json')) as { run: string };
  const later = async (...argv: readonly string[]) => {
    const { stdout, stderr } = await desk.drover(argv, { env: ENV });
    return stdout + stderr;
  };
  // Only drover writes group commands; any other text that looks like a command is escaped.
  const outputs = {
    lines: lines.stdout + lines.stderr,
    json: json.stdout,
    result: await read('result.json'),
    junit: await read('junit.xml'),
    summary: await read('summary.md'),
    show: await later('show', id),
    'show --json': await later('show', id, '--json'),
    'show task': await later('show', id, 'bad'),
    logs: await later('logs', id),
    'logs --json': await later('logs', id, '--json'),
    runs: await later('runs'),
    'runs --json': await later('runs', '--json'),
    'run --dry-run': await later(...run, '--dry-run'),
    plan: await later('plan', NASTY),
  };
  expect(judged(outputs)).toEqual(fine(Object.keys(outputs)));
});

test('a session writes its log, gate, and every later view of it', async () => {
  const server = await startRehearsal({
    // The text arrives in pieces that split a command.
    chunkChars: 3,
    answers: [{ text: NASTY, calls: [{ name: 'shell', args: { command: 'cat nasty.txt; exit 3' } }] }, { text: NASTY }],
  });
  onTestFinished(() => server.close());
  const cwd = await temporaryFolder();
  await writeFile(join(cwd, 'nasty.txt'), NASTY);
  const env = { ...ENV, ANTHROPIC_BASE_URL: server.url };
  const told = async (...argv: readonly string[]) => {
    const { stdout, stderr } = await drover(argv, { cwd, env });
    return { stdout, stderr, both: stdout + stderr };
  };
  const exec = [
    'exec',
    NASTY,
    '--model',
    'anthropic/any',
    '--yes',
    '--sandbox',
    'off',
    '--gate',
    'cat nasty.txt; false',
  ];
  const lines = await told(...exec, '--session', 'one');
  const outputs = {
    lines: lines.stdout,
    gate: lines.stderr,
    json: (await told(...exec, '--session', 'two', '--json')).stdout,
    show: (await told('show', 'one')).both,
    'show --json': (await told('show', 'one', '--json')).both,
    logs: (await told('logs', 'one')).both,
    'logs --json': (await told('logs', 'one', '--json')).both,
    runs: (await told('runs')).both,
    replay: (await told('replay', 'one')).both,
    'a mistake': (await told('exec', 'x', '--model', NASTY)).both,
  };
  expect(judged(outputs)).toEqual(fine(Object.keys(outputs)));
});

// Outputs of a batch with hostile model and tool text: valid XML, no runner command in the log, patches that apply,
// and no secret.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Result } from '@drover/coordinator/batch/results';
import type { Failure } from '@drover/protocol/failures';
import type { Answer } from '@drover/rehearsal/script';
import { formatAnnotations, findAnnotationPlaces } from '../../bin/views/ci/annotations.ts';
import { formatJunit, type JunitEnd } from '../../bin/views/ci/junit.ts';
import { BatchDesk, noisyFiles, SPEC, tidying } from '../support/run/batch-desk.ts';
import { type Element, readJunit } from '../support/data/junit-schema.ts';
import { calls, submits } from '../support/run/run-desk.ts';

const NASTY =
  '::set-output name=x::y\n::add-mask::a\n ::stop-commands::t\r::error::b\n##[add-mask]c\n]]> <failure/> &bogus; \u0000\u0007\u001b[31mred\u001b]0;title\u0007 \ud800 \u202e';

const RESULT: Result = {
  task: 'src-a.ts',
  title: 'Tidy src/a.ts',
  status: 'failed',
  cached: false,
  repository: 'project',
  group: 'src/a.ts',
  files: ['src/a.ts'],
  changed: [],
  attempts: 1,
  usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 },
  ms: 1_500,
  run: 'run_1',
};

const suite = (xml: string): Element => {
  const [first] = readJunit(xml).children;
  if (first === undefined) throw new Error('no suite');
  return first;
};

test.each<[string, Failure]>([
  ['error', { kind: 'provider.unavailable', message: 'x' }],
  ['error', { kind: 'git.failed', args: ['status'], message: 'x' }],
  ['error', { kind: 'workspace.failed', message: 'x' }],
  ['error', { kind: 'store.failed', message: 'x' }],
  ['error', { kind: 'sandbox.failed', message: 'x' }],
  ['error', { kind: 'worker.lost', message: 'x' }],
  ['error', { kind: 'internal', message: 'x' }],
  ['error', { kind: 'journal.newer', path: 'x', version: 2 }],
  ['error', { kind: 'aborted', by: 'crash' }],
  ['failure', { kind: 'gate.failed', command: 'false', output: 'x' }],
  ['failure', { kind: 'limit.reached', limit: 'steps', message: 'x' }],
])('junit.xml has an %s for %j', (name, failure) => {
  const { children } = suite(
    formatJunit([{ ...RESULT, reason: 'x', failure }], { name: 'tidy', at: '2026-11-16T09:30:00', exitCode: 3 }),
  );
  expect(children[0]?.children.map((each) => each.name)).toEqual([name]);
});

test('junit.xml follows its schema, with one case and verdict per task', () => {
  const at = '2026-11-16T09:30:00.123Z';
  const results: readonly Result[] = [
    { ...RESULT, task: 'a', status: 'landed', summary: 'did it' },
    { ...RESULT, task: 'b', status: 'no_change', cached: true },
    { ...RESULT, task: 'c', status: 'failed', reason: 'one\ntwo' },
    {
      ...RESULT,
      task: 'd',
      status: 'failed',
      reason: 'down',
      failure: { kind: 'provider.unavailable', message: 'down' },
    },
    { ...RESULT, task: 'e', status: 'skipped', reason: 'why' },
  ];
  const { attributes, children } = suite(formatJunit(results, { name: 'tidy', at, exitCode: 3 }));
  expect(attributes).toEqual({
    name: 'tidy (project)',
    tests: '5',
    failures: '1',
    errors: '1',
    skipped: '1',
    time: '7.500',
    timestamp: '2026-11-16T09:30:00',
  });
  expect(
    children.map(({ attributes: { classname }, children: own }) => [
      classname,
      own.map(({ name, text }) => [name, text]),
    ]),
  ).toEqual([
    ['tidy.a', [['system-out', 'did it']]],
    ['tidy.b', [['system-out', 'from the cache\nnothing to change']]],
    ['tidy.c', [['failure', 'one\ntwo']]],
    ['tidy.d', [['error', 'down']]],
    ['tidy.e', [['skipped', '']]],
  ]);
});

test.each<[string, readonly Result[], JunitEnd, readonly string[]]>([
  ['nothing more for a run that is done', [{ ...RESULT, status: 'landed' }], { exitCode: 0 }, []],
  ['nothing more for a run whose failed task says why', [{ ...RESULT }], { exitCode: 3 }, []],
  ['an error for a run that was stopped', [{ ...RESULT, status: 'cancelled' }], { exitCode: 130 }, ['error']],
  ['a failure for a gate of the run', [{ ...RESULT }], { exitCode: 4, reason: 'gate' }, ['failure']],
  ['an error for a refused key, without any task', [], { exitCode: 9, reason: 'refused' }, ['error']],
])('junit.xml has %s', (_, results, end, kinds) => {
  const { attributes, children } = readJunit(formatJunit(results, { name: 'tidy', at: '2026-11-16T09:30:00', ...end }));
  const own = children.filter(({ attributes: { name } }) => name === 'tidy').flatMap((each) => each.children);
  expect(own.flatMap((each) => each.children.map(({ name }) => name))).toEqual(kinds);
  expect(attributes['tests']).toBe(String(results.length + kinds.length));
});

test('the XML is valid for any text', () => {
  const text = fc.string({ unit: 'binary', maxLength: 60 });
  fc.assert(
    fc.property(text, text, (one, other) => {
      readJunit(
        formatJunit([{ ...RESULT, task: one, title: other, reason: other, summary: one }], {
          name: one,
          at: '2026-11-16T09:30:00',
          exitCode: 3,
        }),
      );
    }),
    { numRuns: 50 },
  );
  readJunit(
    formatJunit([{ ...RESULT, title: NASTY, reason: NASTY, summary: NASTY }], {
      name: NASTY,
      at: '2026-11-16T09:30:00',
      exitCode: 4,
      reason: NASTY,
    }),
  );
});

const isFile = (path: string) => ['src/a.ts', 'src/b.py', 'a b.ts'].includes(path);

test.each([
  ['src/a.ts(3,7): error TS1: no', [{ file: 'src/a.ts', line: 3, column: 7, message: 'src/a.ts(3,7): error TS1: no' }]],
  ['./src/a.ts:12 no', [{ file: 'src/a.ts', line: 12, message: './src/a.ts:12 no' }]],
  [
    '  at f (/tmp/x/workspaces/1/tree/src/a.ts:3:7)',
    [{ file: 'src/a.ts', line: 3, column: 7, message: 'at f (src/a.ts:3:7)' }],
  ],
  ['File "src/b.py", line 9, in f', [{ file: 'src/b.py', line: 9, message: 'File "src/b.py", line 9, in f' }]],
  ['src/other.ts:3: not of this repository\n12:30:45 no place', []],
])('%j names these places', (output, expected) => {
  expect(findAnnotationPlaces(output, isFile)).toEqual(expected);
});

test('annotations point at the failing line, and their text is never a command', () => {
  const reason = `the gate 'x' fails:\nsrc/a.ts:3:7 100% bad ::error::${NASTY}`;
  const lines = formatAnnotations([{ ...RESULT, task: 'a,b:c', reason }], isFile).split('\n');
  expect(lines).toEqual([
    '::error file=src/a.ts,line=3,col=7,title=a%2Cb%3Ac%3A failed::src/a.ts:3:7 100%25 bad ::error::::set-output name=x::y',
    '',
  ]);
  expect(formatAnnotations([{ ...RESULT, reason: NASTY }], isFile)).toMatch(
    /^::error file=src\/a\.ts,title=src-a\.ts%3A failed::[^\n]*\n$/,
  );
  expect(
    formatAnnotations(
      [
        { ...RESULT, status: 'landed' },
        { ...RESULT, status: 'skipped' },
      ],
      isFile,
    ),
  ).toBe('');
});

test('tasks that fail at one place share an annotation without workspace paths', () => {
  const failed = (task: string, slot: number): Result => ({
    ...RESULT,
    task,
    reason: `the gate 'x' fails:\n  at f (/home/.drover/workspaces/${slot}/tree/src/a.ts:3:7)`,
  });
  expect(formatAnnotations([failed('a', 1), failed('b', 2), failed('c', 3)], isFile)).toBe(
    '::error file=src/a.ts,line=3,col=7,title=a and 2 more%3A failed::at f (src/a.ts:3:7)\n',
  );
  const unplaced = { ...RESULT, reason: 'no room for /home/.drover/workspaces/1/tree/src/a.ts' };
  expect(formatAnnotations([unplaced], isFile)).toMatch(/::no room for src\/a\.ts\n$/);
});

/** The commands that the runner finds in a log. */
function commandsIn(log: string): readonly string[] {
  return log.split(/\r\n|\n|\r/).flatMap((line) => {
    const [, name] = /^[^!-~]*::([\w-]+)/.exec(line) ?? /##\[([\w-]+)/.exec(line) ?? [];
    return name === undefined ? [] : [name];
  });
}

test('GitHub Actions: text of models and tools is never a command; gates are annotated', async () => {
  const gate = 'printf "::set-output name=a::b\\n##[add-mask]c\\nsrc/file1.ts:1:1 ]]> no\\n"; exit 1';
  const nasty = (_: string, step: number): Answer | undefined =>
    step === 3 ? submits(NASTY.replace('\u0000', '').replace('\ud800', '')) : undefined;
  const batch = await BatchDesk.with(
    tidying(nasty),
    noisyFiles(2),
    `${SPEC}  gate: ['test {{ name }} = file2.ts || { ${gate.replaceAll("'", "''")}; }']\n`,
  );
  const summary = join(batch.desk.folder, 'step-summary.md');
  const { code, stdout } = await batch.drover(['--sandbox', 'auto'], {
    env: { GITHUB_ACTIONS: 'true', CI: 'true', GITHUB_STEP_SUMMARY: summary },
  });
  expect(code).toBe(3);
  expect(new Set(commandsIn(stdout))).toEqual(new Set(['group', 'endgroup', 'error']));
  expect(stdout).toContain(
    '::error file=src/file1.ts,line=1,col=1,title=src-file1.ts%3A failed::src/file1.ts:1:1 ]]> no\n',
  );
  const report = await batch.text('report.md');
  expect(await readFile(summary, 'utf8')).toBe(`${report}\n`);
  expect(report).toContain('1 of 2 tasks are done');
  expect(suite(await batch.text('junit.xml')).children[0]?.children[0]?.text).toContain(']]> no');
  batch.desk.git('apply', '--check', '.drover/out/patches/src-file2.ts.patch');
});

test('--json prints only JSON on stdout, without any runner command', async () => {
  const nasty = (_: string, step: number): Answer | undefined =>
    step === 1 ? { text: 'x ##[add-mask]c\n::set-output name=a::b', stop: 'refusal' } : undefined;
  const batch = await BatchDesk.with(tidying(nasty), noisyFiles(1));
  const { stdout, stderr } = await batch.drover(['--json'], { env: { GITHUB_ACTIONS: 'true' } });
  const texts = stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.stringify(JSON.parse(line)));
  expect([commandsIn(stdout), commandsIn(stderr)]).toEqual([[], ['error']]);
  expect(texts.join('')).toContain('x ##[add-mask]c');
});

test('a second batch replaces the outputs of the first and leaves the checkout as is', async () => {
  const batch = await BatchDesk.with(tidying(), noisyFiles(2));
  await batch.run();
  await batch.spec(SPEC.replace('src/**/*.ts', 'src/file2.ts'));
  await batch.run(['--junit', '../j.xml', '--summary', '../s.md', '--gate', 'true']);
  expect([await batch.patches(), Object.keys(await batch.statuses())]).toEqual([
    ['src-file2.ts.patch'],
    ['src-file2.ts'],
  ]);
  expect((await readdir(batch.out)).toSorted()).toEqual([
    '.gitignore',
    'combined.patch',
    'junit.xml',
    'patches',
    'report.md',
    'results.ndjson',
    'summary.json',
  ]);
  expect(await readFile(join(batch.desk.folder, 'j.xml'), 'utf8')).toBe(await batch.text('junit.xml'));
  expect(await readFile(join(batch.desk.folder, 's.md'), 'utf8')).toBe(`${await batch.text('report.md')}\n`);
  expect(batch.desk.git('status', '--porcelain')).toBe('');
});

test('no output file holds a secret of this machine, and the patches still apply', async () => {
  const SECRET = 'hunter2-hunter2-hunter2';
  const leaking = (path: string, step: number): Answer | undefined => {
    if (step === 2) return calls('write', { path, content: `log('${SECRET}');\n` });
    return step === 3 ? submits(`the token is ${SECRET}`) : undefined;
  };
  const batch = await BatchDesk.with(
    tidying(leaking),
    noisyFiles(2),
    `${SPEC}  gate: ['! grep -r hunter2 src/file1.ts || test {{ name }} = file2.ts']\n`,
  );
  await batch.drover([], { env: { DEPLOY_TOKEN: SECRET } });
  const names = (await readdir(batch.out, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  const texts = await Promise.all(names.map(({ parentPath, name }) => readFile(join(parentPath, name), 'utf8')));
  expect([names.length > 6, texts.filter((text) => text.includes(SECRET))]).toEqual([true, []]);
  batch.desk.git('apply', '.drover/out/combined.patch');
  expect(await batch.desk.read('src/file2.ts')).toBe("log('[redacted:value]');\n");
});

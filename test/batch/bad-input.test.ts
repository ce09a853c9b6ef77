// Mistakes in a batch spec or in the files it names: reported with place and fix before anything runs.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { drover } from '../cli/fake-io.ts';
import { SPEC } from '../support/run/batch-desk.ts';
import { runSync } from '../support/process/run-sync.ts';

// None of these inputs reaches a model, so the test starts none.
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'drover-bad-input-'));
  const project = join(folder, 'project');
  await mkdir(join(project, 'src'), { recursive: true });
  for (const at of [1, 2]) await writeFile(join(project, 'src', `file${at}.ts`), 'console.log(1);\n');
  await writeFile(join(folder, 'list.txt'), 'src/file1.ts\nsrc/fiel2.ts\n');
  const git = (...args: readonly string[]) => runSync('git', args, { cwd: project });
  git('init', '-q', '-b', 'main');
  git('add', '-A');
  git('-c', 'user.name=A Person', '-c', 'user.email=person@example.com', 'commit', '-q', '-m', 'first');
});

afterAll(() => rm(folder, { recursive: true, force: true }));

const said = async (argv: readonly string[] = [], spec = '../spec.yaml') => {
  const env = { DROVER_HOME: join(folder, 'home'), ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: 'http://127.0.0.1:9' };
  const typed = ['batch', spec, '--model', 'anthropic/scripted', ...argv];
  const { code, stdout, stderr } = await drover(typed, { cwd: join(folder, 'project'), env });
  expect([code, stdout]).toEqual([2, '']);
  return stderr.trimEnd().split('\n');
};

const PROMPT = '  prompt: Replace console calls in {{ files }}.\n';

test.each<[string, string, readonly string[]]>([
  [
    'an unknown key',
    SPEC.replace('contains', 'contain'),
    ["../spec.yaml:6:3: unknown key 'contain'; did you mean contains?"],
  ],
  [
    'an unknown key of a task',
    SPEC.replace('title', 'titel'),
    ["../spec.yaml:8:3: unknown key 'titel'; did you mean title?"],
  ],
  [
    'a list where a text belongs',
    SPEC.replace('name: no-console', 'name: [a]'),
    ['../spec.yaml:3:7: name must be text (got a list)'],
  ],
  ['a number where a list belongs', `${SPEC}gates: 5\n`, ['../spec.yaml:10:8: gates must be a list (got 5)']],
  ['another version', SPEC.replace('version: 1', 'version: 2'), ['../spec.yaml:2:10: version must be 1 (got 2)']],
  ['no version', SPEC.replace('version: 1\n', ''), ['../spec.yaml:2:1: version is missing; it must be 1']],
  ['no task', SPEC.replace(/task:[^]*/, ''), ['../spec.yaml:2:1: task is missing; it must be a map of keys']],
  ['no prompt', SPEC.replace(PROMPT, ''), ['../spec.yaml:8:3: task.prompt is missing; it must be text']],
  [
    'nothing selected',
    SPEC.replace('  files: ["src/**/*.ts"]\n', ''),
    ['../spec.yaml:5:3: select needs files, diff or command; files: ["**"] takes all there are'],
  ],
  [
    'a grouping there is not',
    `${SPEC}group: { by: directry }\n`,
    [
      "../spec.yaml:10:14: group.by must be one of file, directory, codeowners, package (got 'directry'); did you mean directory?",
    ],
  ],
  [
    'an invalid budget',
    `${SPEC}limits: { budget: 5 }\n`,
    ['../spec.yaml:10:19: limits.budget must be text like 5usd or 200ktok (got 5)'],
  ],
  [
    'an invalid share',
    `${SPEC}limits: { stopWhenFailed: 300% }\n`,
    ["../spec.yaml:10:27: '300%' is neither a share nor a count; write it like 30% or 5"],
  ],
  [
    'an undefined template name',
    SPEC.replace('{{ files }}', '{{ fils }}'),
    ['../spec.yaml:9:36: there is no {{ fils }}; did you mean files?; braces that shall stay are \\{{'],
  ],
  [
    'an undefined name in a longer text',
    SPEC.replace(PROMPT, '  prompt: |\n    Do it\n    in {{ vars.place }}, please.\n'),
    [
      '../spec.yaml:11:8: there is no {{ vars.place }}; known are path, files, name, dir, ext, count, group, repository; braces that shall stay are \\{{',
    ],
  ],
  [
    'a template in quotes of a command',
    `${SPEC}  gate: ['test -f "{{ path }}"']\n`,
    ['../spec.yaml:10:20: {{ path }} stands in quotes; leave them out: it is quoted for the shell'],
  ],
  [
    'a glob that matches nothing',
    SPEC.replace('"src/**/*.ts"', '"src/*.ts", "scr/*.ts"'),
    ["../spec.yaml:5:23: 'scr/*.ts' matches no file of the repository; did you mean src/*.ts?"],
  ],
  [
    'a glob that is cut off',
    SPEC.replace('src/**/*.ts', 'src/*.{ts'),
    ["../spec.yaml:5:11: 'src/*.{ts' has an { without its }"],
  ],
  [
    'a glob that leads elsewhere',
    SPEC.replace('src/**/*.ts', '../**'),
    ["../spec.yaml:5:11: '../**' leads out of the repository"],
  ],
  [
    'an invalid pattern',
    SPEC.replace('console\\\\.', '(('),
    ['../spec.yaml:6:13: this is no regular expression: /((/m: Unterminated group'],
  ],
  [
    'a range that git does not know',
    SPEC.replace('contains: "console\\\\."', 'diff: mian...HEAD'),
    ["../spec.yaml:6:9: git does not know 'mian...HEAD'; fetch it first, or write it like main...HEAD"],
  ],
  [
    'a list that is not there',
    SPEC.replace('["src/**/*.ts"]', 'none.txt'),
    ['../spec.yaml:5:10: the list none.txt cannot be read (ENOENT); check the path'],
  ],
  [
    'a glob where a list is named',
    SPEC.replace('["src/**/*.ts"]', 'src/*.ts'),
    ['../spec.yaml:5:10: the list src/*.ts cannot be read (ENOENT); globs are a list: files: ["src/*.ts"]'],
  ],
  [
    'a list with a missing file',
    SPEC.replace('["src/**/*.ts"]', 'list.txt'),
    ["../spec.yaml:5:10: ../list.txt:2: there is no file 'src/fiel2.ts' in the repository; did you mean src/file2.ts?"],
  ],
  [
    'a command that fails',
    SPEC.replace('files: ["src/**/*.ts"]', 'command: "echo no >&2; exit 4"'),
    ['../spec.yaml:5:12: the command fails (4): no'],
  ],
  [
    'a command that prints something else',
    SPEC.replace('files: ["src/**/*.ts"]', `command: "echo '{\\"fiels\\": []}'"`),
    ["../spec.yaml:5:12: the command:1: an item has no 'fiels'; known are path, files, id, vars"],
  ],
  [
    'two tasks with the same id',
    SPEC.replace('task:', 'task:\n  id: same'),
    ["../spec.yaml:8:7: the id 'same' is used twice: for src/file1.ts and for src/file2.ts; make it unique"],
  ],
  [
    'an id that can’t be one',
    SPEC.replace('task:', 'task:\n  id: "{{ path }}"'),
    [
      "../spec.yaml:8:7: 'src/file1.ts' can't be the id of a task: use letters, digits, ., - and _, at most 64",
      "../spec.yaml:8:7: 'src/file2.ts' can't be the id of a task: use letters, digits, ., - and _, at most 64",
    ],
  ],
  [
    'a file that is no YAML',
    'a: [',
    ['../spec.yaml:1:5: Flow sequence in block collection must be sufficiently indented and end with a ]'],
  ],
])('%s: exits 2 and names the place', async (_, spec, expected) => {
  await writeFile(join(folder, 'spec.yaml'), spec);
  expect(await said()).toEqual(expected.map((line, at) => (at === 0 ? `drover: ${line}` : line)));
});

test('a missing spec, a shard out of range or an unknown flag exits 2', async () => {
  await writeFile(join(folder, 'spec.yaml'), SPEC);
  expect(await said(['--shard', '6/5'])).toEqual(['drover: --shard: there is no shard 6 of 5; they are 1/5 to 5/5']);
  expect(await said(['--shard', '0/5'])).toEqual(['drover: --shard: there is no shard 0 of 5; they are 1/5 to 5/5']);
  expect(await said(['--shard', 'x'])).toEqual([
    "drover: --shard: 'x' is not a shard; write it like 2/5, the second of five",
  ]);
  expect((await said(['--canry', '3'])).join(' ')).toContain('did you mean --canary?');
  expect(await said([], 'none.yaml')).toEqual(['drover: none.yaml cannot be read (ENOENT); name a batch spec']);
});

test('a dollar budget for a model without a price exits 2', async () => {
  await writeFile(join(folder, 'spec.yaml'), `${SPEC}limits: { perTask: 1usd }\n`);
  expect((await said()).join('\n')).toContain('the price of anthropic/scripted is not known');
});

test('outputs that can’t be written exit 2 before anything is spent', async () => {
  await writeFile(join(folder, 'spec.yaml'), SPEC);
  expect(await said(['--out', '../spec.yaml/out'])).toEqual([
    expect.stringMatching(/^drover: --out: .*spec.yaml\/out cannot be written \(ENOTDIR\)$/),
  ]);
});

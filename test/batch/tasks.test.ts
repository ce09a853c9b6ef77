// From files to tasks: groups, ids, templates, shards. All are pure functions.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { codeownersOfPath, parseCodeowners } from '@drover/coordinator/batch/items/codeowners';
import { groupBatchItems } from '@drover/coordinator/batch/items/group';
import { isInBatchShard } from '@drover/coordinator/batch/shard';
import { type BatchSpec, failuresMax, type Item } from '@drover/coordinator/batch/items/spec';
import { makeBatchTasks } from '@drover/coordinator/batch/tasks';
import { filledTemplate, filledForShell, type TemplateValues } from '@drover/coordinator/batch/template';
import type { Tree } from '@drover/coordinator/batch/items/tree';

const FILES = ['a.ts', 'src/b.ts', 'src/c.ts', 'src/d.ts', 'packages/x/src/e.ts', 'packages/y/f.ts'];
const OWNERS = '# who\n* @all\n/src/ @src @more\n*.md @docs\npackages/*/src @deep\n';

const tree: Tree = new Map(
  [...FILES, 'packages/x/package.json', 'packages/y/Cargo.toml'].map((path) => [
    path,
    { path, blob: path, mode: '100644', bytes: 1 },
  ]),
);
const items = (paths: readonly string[]): readonly Item[] => paths.map((path) => ({ files: [path] }));
const grouped = (by: BatchSpec['group']['by'], max = 50, paths: readonly string[] = FILES) =>
  groupBatchItems(items(paths), { by, max }, { tree, owners: parseCodeowners(OWNERS) }).map(({ name, part, files }) => [
    part === undefined ? name : `${name} ${part}`,
    files,
  ]);

test('files are grouped by file, folder, package or owner, in any input order', () => {
  expect(grouped('file').map(([name]) => name)).toEqual(FILES.toSorted());
  expect(grouped('directory')).toEqual([
    ['.', ['a.ts']],
    ['packages/x/src', ['packages/x/src/e.ts']],
    ['packages/y', ['packages/y/f.ts']],
    ['src', ['src/b.ts', 'src/c.ts', 'src/d.ts']],
  ]);
  expect(grouped('package')).toEqual([
    ['.', ['a.ts', 'src/b.ts', 'src/c.ts', 'src/d.ts']],
    ['packages/x', ['packages/x/src/e.ts']],
    ['packages/y', ['packages/y/f.ts']],
  ]);
  expect(grouped('codeowners')).toEqual([
    ['@all', ['a.ts', 'packages/y/f.ts']],
    ['@deep', ['packages/x/src/e.ts']],
    ['@src @more', ['src/b.ts', 'src/c.ts', 'src/d.ts']],
  ]);
  expect(grouped('directory', 50, FILES.toReversed())).toEqual(grouped('directory'));
});

test('a group with too many files is split into groups of similar size', () => {
  expect(grouped('directory', 2).filter(([name]) => String(name).startsWith('src'))).toEqual([
    ['src 1', ['src/b.ts']],
    ['src 2', ['src/c.ts', 'src/d.ts']],
  ]);
});

test.each([
  ['a.ts', '* @all', '@all'],
  ['docs/a.md', 'docs/ @docs', '@docs'],
  ['x/docs/a.md', '/docs/ @docs', ''],
  ['x/docs/a.md', 'docs/ @docs', '@docs'],
  ['docs/deep/a.md', 'docs/* @docs', ''],
  ['a b.md', 'a\\ b.md @space', '@space'],
  ['src/a.ts', '* @all\n/src/a.ts', ''],
  ['src/a.ts', '[Section] @team\nsrc/ @src # why', '@src'],
])('the owners of %s by %j: %s', (path, text, owner) => {
  expect(codeownersOfPath(path, parseCodeowners(text)).join(' ')).toBe(owner);
});

const SPEC: BatchSpec = {
  name: 'tidy',
  select: { exclude: [] },
  group: { by: 'file', max: 50 },
  task: { prompt: 'Tidy {{ files }} in {{ dir }}.', gates: ['lint {{ files }}'] },
  gates: [],
  setup: [],
  limits: {},
  vars: { who: 'me' },
};
const tasks = (paths: readonly string[], spec: BatchSpec = SPEC) =>
  makeBatchTasks(spec, groupBatchItems(items(paths), spec.group, { tree, owners: [] }), 'project').tasks;

test('a task states its subject and how it is tested', () => {
  expect(tasks(['src/b.ts'])).toEqual([
    {
      id: 'src-b.ts',
      title: 'tidy: src/b.ts',
      prompt:
        'Tidy src/b.ts in src.\n\nWhen you say that you are done, each of these is run in your workspace and must pass:\nlint src/b.ts',
      dependsOn: [],
      files: ['src/b.ts'],
      mode: 'write',
      gates: ['lint src/b.ts'],
      group: 'src/b.ts',
    },
  ]);
});

test('a spec reports at most twenty missing variables', () => {
  const names = Array.from({ length: 21 }, (_, at) => `{{ vars.v${at} }}`);
  const spec = { ...SPEC, task: { ...SPEC.task, prompt: names.join(' ') } };
  const { tasks: made, problems } = makeBatchTasks(
    spec,
    groupBatchItems(items(['src/b.ts']), spec.group, { tree, owners: [] }),
    'p',
  );
  expect([made, problems.length]).toEqual([[], 20]);
});

test('task ids depend on the path alone, are unique, and are valid branch names', () => {
  const ids = (...paths: readonly string[]) => tasks(paths).map(({ id }) => id);
  expect(ids('src/a-b.ts')).toEqual(['src-a-b.ts']);
  expect(ids('src/a/b.ts', 'src/a-b.ts')).toEqual([
    expect.stringMatching(/^src-a-b.ts-[0-9a-f]{8}$/),
    expect.stringMatching(/^src-a-b.ts-[0-9a-f]{8}$/),
  ]);
  const path = fc
    .array(
      fc.string({ minLength: 1, unit: 'binary' }).filter((name) => !/[/\0]/.test(name)),
      { minLength: 1 },
    )
    .map((names) => names.join('/'));
  fc.assert(
    fc.property(fc.uniqueArray(path, { minLength: 1, maxLength: 20 }), (paths) => {
      const found = ids(...paths);
      expect(new Set(found.map((id) => id.toLowerCase())).size).toBe(paths.length);
      for (const id of found) expect(id).toMatch(/^[A-Za-z0-9](?!.*\.\.)[A-Za-z0-9._-]{0,63}(?<!\.lock)$/);
    }),
    { numRuns: 50 },
  );
});

const values = (files: readonly string[]): TemplateValues => ({
  path: files[0] ?? '',
  files,
  name: 'n',
  dir: 'd',
  ext: 'ts',
  count: String(files.length),
  group: 'g',
  repository: 'r',
  vars: { who: 'you & me' },
});

test('templates insert plain words in text and quoted words in commands', () => {
  const two = values(['a.ts', '$(reboot) b.ts']);
  expect(filledTemplate('{{files}} ({{ count }}) for {{ vars.who }}, not \\{{ files }}', two)).toBe(
    'a.ts, $(reboot) b.ts (2) for you & me, not {{ files }}',
  );
  expect(filledForShell('lint {{ files }} --for {{ vars.who }}', two)).toBe(
    "lint a.ts '$(reboot) b.ts' --for 'you & me'",
  );
  expect(filledForShell('lint {{ files }}', values(["it's -x"]))).toBe("lint 'it'\\''s -x'");
  expect(filledTemplate('{{ files }}', values(['odd\nname"']))).toBe('"odd\\nname\\""');
});

test('shards are the same on every machine, differ by at most one task, and cover all', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.string(), { maxLength: 60 }), fc.integer({ min: 1, max: 9 }), (ids, count) => {
      const all = ids.map((id) => ({ id }));
      const parts = Array.from({ length: count }, (_, at) => isInBatchShard(all, { index: at + 1, count }));
      const again = isInBatchShard(all.toReversed(), { index: 1, count });
      expect(
        parts
          .flat()
          .map(({ id }) => id)
          .toSorted(),
      ).toEqual(ids.toSorted());
      expect(new Set(again.map(({ id }) => id))).toEqual(new Set(parts[0]?.map(({ id }) => id)));
      const sizes = parts.map((part) => part.length);
      expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
    }),
  );
});

test('the failure limit is a count or a share of all tasks', () => {
  expect([failuresMax({ count: 5 }, 10), failuresMax({ percent: 30 }, 10), failuresMax({ percent: 1 }, 10)]).toEqual([
    5, 3, 1,
  ]);
  expect(failuresMax(undefined, 10)).toBe(undefined);
});

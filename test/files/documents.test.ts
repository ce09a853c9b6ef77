// The YAML reader with a schema: texts of all formats, and their positions.

import { expect, test } from 'vitest';
import { z } from 'zod';
import { readDocument } from '@drover/documents/read-document';
import { parsePlanFile } from '../../bin/files/plan-file.ts';
import { parseRepositoriesFile } from '../../bin/files/repositories-file.ts';

const schema = z.strictObject({
  name: z.string(),
  size: z.union([z.enum(['small', 'large']), z.strictObject({ width: z.int() })]).exactOptional(),
  more: z.record(z.string(), z.string()).exactOptional(),
});

function mistakes(text: string, mayAlias = false): readonly string[] {
  const read = readDocument(text, 'x.yaml', { what: 'the file', schema, mayAlias });
  return 'mistakes' in read ? read.mistakes : [];
}

test.each<[string, string, readonly string[]]>([
  ['nothing', '# only a comment\n', ['x.yaml:1:1: the file is empty; it needs name']],
  ['a misspelt key that is required', 'nmae: x', ["x.yaml:1:1: unknown key 'nmae'; did you mean name?"]],
  [
    'a choice of another kind',
    'name: x\nsize: 5',
    ['x.yaml:2:7: size must be one of small, large or a map of keys (got 5)'],
  ],
  [
    'a misspelt choice',
    'name: x\nsize: lage',
    ["x.yaml:2:7: size must be one of small, large (got 'lage'); did you mean large?"],
  ],
  [
    'a mistake inside one of two forms',
    'name: x\nsize: { width: wide }',
    ["x.yaml:2:16: size.width must be a number (got 'wide')"],
  ],
  ['a key that is a list', 'name: x\n? [a]\n: 5', ['x.yaml:2:3: a key must be text']],
  [
    'a key that objects inherit',
    'name: x\nmore: { __proto__: y }',
    ["x.yaml:2:9: a key can't be called __proto__; choose another name"],
  ],
  [
    'a key as number and as text',
    'name: x\nmore: { 1: a, "1": b }',
    ['x.yaml:2:15: the key 1 is given twice; remove one'],
  ],
  [
    'two mistakes in the order of the text',
    'more: 5\nname: 6',
    ['x.yaml:1:7: more must be a map of keys (got 5)', 'x.yaml:2:7: name must be text (got 6)'],
  ],
  ['a key without a value', 'name:\n', ['x.yaml:1:1: name has no value; give it one or remove it']],
])('%s is a mistake with its position', (_, text, expected) => {
  expect(mistakes(text)).toEqual(expected);
});

test('at most ten mistakes are reported', () => {
  const keys = Array.from({ length: 30 }, (_, at) => `key${at}: 1`).join('\n');
  expect(mistakes(`name: x\n${keys}`)).toHaveLength(10);
});

test.each([100_000, 3_000, 200])('lists nested %i levels deep are refused', (levels) => {
  expect(mistakes(`name: ${'['.repeat(levels)}${']'.repeat(levels)}`)[0]).toMatch(
    /^x\.yaml:1:\d+: this is nested more than 100 levels deep; flatten it$/,
  );
});

test('an alias takes the value of the latest anchor before it', () => {
  const text = 'more: { a: &x one, b: *x, c: &x two, d: *x }\nname: *x';
  const read = readDocument(text, 'x.yaml', { what: 'the file', schema, mayAlias: true });
  expect('value' in read && read.value).toEqual({ name: 'two', more: { a: 'one', b: 'one', c: 'two', d: 'two' } });
});

test('a wrong value that an alias repeats is reported at both places', () => {
  expect(mistakes('more: { a: &x { b: c } }\nname: *x', true)).toEqual([
    'x.yaml:1:15: more.a must be text (got a map)',
    'x.yaml:2:7: name must be text (got a map)',
  ]);
});

test('a plan of more than a million characters is read', () => {
  const prompt = 'word '.repeat(300_000).trim();
  expect(
    parsePlanFile(`tasks: [{ id: a, prompt: ${prompt} }]`, 'plan.yaml', {
      tasksMax: 10,
      modelOf: (name) => name,
      agents: [],
    }).tasks[0]?.prompt,
  ).toBe(prompt);
});

test('a revision of digits keeps its leading zeros', () => {
  const [entry] = parseRepositoriesFile('repositories: [{ path: a, revision: 0012345 }]', 'r.yaml', '/folder');
  expect(entry?.revision).toBe('0012345');
});

test('a repository that is named twice is reported at its own place', () => {
  const text = 'repositories:\n  - { path: a/x, revision: v1 }\n  - { path: b/X, revision: v1 }\n';
  expect(() => parseRepositoriesFile(text, 'r.yaml', '/folder')).toThrow(
    /^r\.yaml:3:5: two repositories are called 'X'; give one a name$/,
  );
});

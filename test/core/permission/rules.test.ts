// Rules: their syntax, and what they match.

import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { doesPermissionRuleMatch, parsePermissionRule } from '@drover/core/permission/rules';
import { expect, onTestFinished, test } from 'vitest';
import { toolNamed } from './tools.ts';

test('a rule is a tool, a tool with a pattern, or everything', () => {
  expect(
    ['read', 'git', ' * ', 'shell(pnpm test*)', 'write( src/** )', 'shell(echo (a))', 'shell(*)'].map((text) =>
      parsePermissionRule(text, 'allow'),
    ),
  ).toEqual([
    { effect: 'allow', tool: 'read', text: 'read' },
    { effect: 'allow', tool: 'git', text: 'git' },
    { effect: 'allow', tool: '*', text: '*' },
    { effect: 'allow', tool: 'shell', pattern: 'pnpm test*', text: 'shell(pnpm test*)' },
    { effect: 'allow', tool: 'write', pattern: 'src/**', text: 'write( src/** )' },
    { effect: 'allow', tool: 'shell', pattern: 'echo (a)', text: 'shell(echo (a))' },
    { effect: 'allow', tool: 'shell', text: 'shell(*)' },
  ]);
});

const EXAMPLE = '; a right one is shell(pnpm test*), write(src/**), read or *';

test.each([
  ['', 'it is empty at position 1'],
  ['shell(pnpm test', 'the ")" is missing that closes "(", expected at position 16'],
  ['shell()', 'a pattern is expected between the parentheses at position 7'],
  ['shell pnpm', '"(" or the end is expected, not " ", at position 6'],
  [' (x)', 'the name of a tool is expected, not "(", at position 2'],
  ['**', 'the name of a tool is expected, not "*", at position 1'],
])('%j is refused with the position and an example', (text, problem) => {
  expect(() => parsePermissionRule(text, 'deny')).toThrow(
    new UsageError(`${JSON.stringify(text)} is no rule: ${problem}${EXAMPLE}`),
  );
});

const ROOT = '/nowhere/workspace';
const write = toolNamed('write', 'write');

test.each([
  ['write(src/**)', 'src/a.ts', true],
  ['write(src/**)', 'src/deep/er/a.ts', true],
  ['write(src/**)', 'src', true],
  ['write(src/**)', 'src2/a.ts', false],
  ['write(src/*)', 'src/a.ts', true],
  ['write(src/*)', 'src/deep/a.ts', false],
  ['write(**/*.ts)', 'a.ts', true],
  ['write(**/*.ts)', 'src/deep/a.ts', true],
  ['write(*.ts)', 'src/a.ts', false],
  ['write(src)', 'src/a.ts', true],
  ['write(src)', 'srcs/a.ts', false],
  ['write(src/{a,b}.ts)', 'src/b.ts', true],
  ['write(src/{a,b}.ts)', 'src/c.ts', false],
  ['write(a+b.ts)', 'aab.ts', false],
  ['write(src/**)', './src/../src/a.ts', true],
  ['write(src/**)', `${ROOT}/src/a.ts`, true],
  ['write(src/**)', 'src/../other/a.ts', false],
  ['write(/etc/**)', '/etc/passwd', true],
  ['write', 'anything', true],
  ['*', 'anything', true],
  ['read', 'anything', false],
])('%s for %s: %s', (rule, path, holds) => {
  expect(doesPermissionRuleMatch(parsePermissionRule(rule, 'deny'), { tool: write, subject: path }, ROOT)).toBe(holds);
});

test('write and read stand for every tool that writes or reads', () => {
  const edit = toolNamed('edit', 'write');
  const grep = toolNamed('grep', 'read');
  const holds = (rule: string, tool: typeof edit) =>
    doesPermissionRuleMatch(parsePermissionRule(rule, 'deny'), { tool, subject: 'src/a.ts' }, ROOT);
  expect([holds('write(src/**)', edit), holds('read', grep), holds('write', grep), holds('edit', write)]).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

test('a path out of the workspace never matches an allowed pattern', () => {
  const holds = (path: string) =>
    doesPermissionRuleMatch(parsePermissionRule('write(**/*)', 'allow'), { tool: write, subject: path }, ROOT);
  expect([holds('a'), holds('../a'), holds('/etc/a')]).toEqual([true, false, false]);
});

test('a rule sees the target of a link', async () => {
  const root = await mkdtemp(join(tmpdir(), 'drover-test-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  await mkdir(join(root, 'secrets'));
  await symlink('secrets', join(root, 'public'));
  const holds = (rule: string, effect: 'allow' | 'deny') =>
    doesPermissionRuleMatch(parsePermissionRule(rule, effect), { tool: write, subject: 'public/key' }, root);
  expect([holds('write(secrets/**)', 'deny'), holds('write(public/**)', 'allow')]).toEqual([true, false]);
});

test.each([
  ['git(log*--stat*src)', 'log --stat -n 3 src', true],
  ['git(log*--stat*src)', 'log src --stat', false],
  ['git(log*--stat*src)', 'log -n 3 src', false],
  ['git(*log*)', 'git log -1', true],
])('%s over the text %s: %s', (rule, subject, matches) => {
  const git = toolNamed('git', 'read');
  expect(doesPermissionRuleMatch(parsePermissionRule(rule, 'deny'), { tool: git, subject }, ROOT)).toBe(matches);
});

test('the subject of a tool that takes no path is text', () => {
  const git = toolNamed('git', 'read');
  const holds = (rule: string) =>
    doesPermissionRuleMatch(parsePermissionRule(rule, 'deny'), { tool: git, subject: 'diff src/a.ts' }, ROOT);
  expect([holds('git(diff*)'), holds('git(log*)'), holds('git')]).toEqual([true, false, true]);
});

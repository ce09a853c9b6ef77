// Rules with unknown tool names: an error with a suggestion, in flags and in configs.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TOOL_NAMES } from '@drover/core/permission/tool-names';
import { builtinRunDefinitions, sessionTools } from '@drover/core/tools/builtin';
import { expect, test } from 'vitest';
import { readPermissionRule, readServedToolRule } from '../../../bin/permission/rule-names.ts';
import { loadSettings } from '../../../bin/start/settings.ts';
import { SKILL } from '@drover/core/tools/skill';
import { FIND_TOOLS } from '@drover/core/tools/served/find-tools';
import { drover, FakeIo, temporaryFolder } from '../fake-io.ts';

async function withConfig(text: string): Promise<string> {
  const cwd = await temporaryFolder();
  await mkdir(join(cwd, '.config/drover'), { recursive: true });
  await writeFile(join(cwd, '.config/drover/config.yaml'), text);
  return cwd;
}

test('rules know every tool name', () => {
  const names = [...sessionTools, ...builtinRunDefinitions()].map(({ name }) => name).concat(FIND_TOOLS, SKILL);
  expect([...TOOL_NAMES].sort()).toEqual([...new Set(names)].sort());
});

test.each(['exec', 'run', 'chat', 'serve', 'resume'])('drover %s refuses a rule for an unknown tool', async (word) => {
  const goal = word === 'exec' || word === 'run' ? ['go'] : [];
  const ran = await drover([word, ...goal, '--model', 'anthropic/any', '--deny', 'bash(python3*)'], {});
  expect([ran.code, ran.stdout]).toEqual([2, '']);
  expect(ran.stderr).toContain('the rule bash(python3*) names no tool; did you mean shell(python3*)?');
});

test.each([
  ['Bash(npm test*)', 'shell(npm test*)'],
  ['shel', 'shell'],
  ['Read(src/**)', 'read(src/**)'],
  ['str_replace(src/**)', 'edit(src/**)'],
  ['ls', 'list'],
])('%s means %s', (text, meant) => {
  const sentence = `the rule ${text} names no tool; did you mean ${meant}?`;
  expect(() => readPermissionRule(text, 'allow')).toThrow(sentence);
  expect(() => readServedToolRule(text, 'allow')).toThrow(sentence);
});

test.each([...TOOL_NAMES, 'mcp', 'mcp(github.*)', 'mcp__github__search', '*'])('the rule %s is accepted', (text) => {
  expect(readPermissionRule(text, 'allow')).toMatchObject({ effect: 'allow', text });
});

test('an unknown tool name is an error that lists the tools, unless clients have tools', () => {
  expect(() => readPermissionRule('deploy', 'deny')).toThrow(
    `the rule deploy names no tool; the tools are ${TOOL_NAMES.join(', ')}`,
  );
  expect(readServedToolRule('deploy', 'deny')).toEqual({ effect: 'deny', tool: 'deploy', text: 'deploy' });
});

test('a config with an unknown tool name is refused with its line', async () => {
  const cwd = await withConfig("turns: 3\ndeny: ['bash(python3*)']\n");
  const ran = await drover(['exec', 'go', '--model', 'anthropic/any'], { cwd });
  expect(ran.code).toBe(2);
  expect(ran.stderr).toContain('config.yaml:2:8: the rule bash(python3*) names no tool; did you mean shell(python3*)?');
});

test('a config may name a client’s tool, with a note that it holds for those only', async () => {
  const cwd = await withConfig('deny: [deploy]\n');
  const { rules, warnings } = await loadSettings(new FakeIo({ cwd }).io, cwd);
  expect(rules).toHaveLength(1);
  expect(warnings).toEqual([
    `${join(cwd, '.config/drover/config.yaml')}: the rule deploy names no tool of drover's; it holds only for tools of clients of drover serve`,
  ]);
});

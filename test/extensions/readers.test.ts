// Skills, agents and hooks of other agents: what drover takes from a file, and what it says about mistakes.

import { expect, test } from 'vitest';
import { readAgentFiles } from '@drover/extensions/agents';
import { readClaudeHooks } from '@drover/extensions/claude-hooks';
import { readSkillFiles } from '@drover/extensions/skills';
import type { SourceFile } from '@drover/extensions/source';

const file = (name: string, text: string, isOwn = false): SourceFile => ({ name, path: `/p/${name}`, text, isOwn });
const markdown = (lines: string, body = 'Do it.') => `---\n${lines}\n---\n${body}`;

test('skills are sorted by name; the first of equal names wins, with a warning', () => {
  const { skills, warnings } = readSkillFiles([
    file('.claude/skills/zip', markdown('name: zip\ndescription: Zips.')),
    file('.claude/skills/add', markdown('name: add\ndescription: Adds.')),
    file('/u/skills/zip', markdown('name: zip\ndescription: Mine.'), true),
  ]);
  expect(skills.map(({ name, description }) => [name, description])).toEqual([
    ['add', 'Adds.'],
    ['zip', 'Zips.'],
  ]);
  expect(warnings).toEqual(["/u/skills/zip is left out: .claude/skills/zip has the same name 'zip'"]);
});

test('a skill with a mistake is left out with its file and line; the others stay', () => {
  const { skills, warnings } = readSkillFiles([
    file('a', '# no front matter'),
    file('b', markdown('name: b')),
    file('c', markdown('name: My Skill\ndescription: Works.')),
    file('d', markdown(`description: ${'long '.repeat(400)}`)),
  ]);
  expect(skills.map(({ name, description }) => [name, description.length])).toEqual([
    ['c', 6],
    ['d', 1_024],
  ]);
  expect(warnings).toEqual([
    'a/SKILL.md:1: the front matter is missing; begin the file with a line ---, so the skill is left out',
    'b/SKILL.md:1: a skill needs a description, so the skill is left out',
    "c/SKILL.md:2: the name 'My Skill' is not in a-z, 0-9 and -; it is called 'c'",
  ]);
});

test('an agent gets drover’s names of its tools, and none for a name that drover lacks', async () => {
  const { agents, warnings } = await readAgentFiles([
    file('a.md', markdown('name: a\ndescription: A.\ntools: Read, Glob, Bash, WebFetch, Bash(git:*), mcp__x__y')),
    file('b.md', markdown('description: B.\ndisallowedTools: Write, Edit, Bash\nmodel: inherit')),
    file('c.md', markdown('name: c\ndescription: C.\nmodel: sonnet')),
    file('d.md', markdown('name: d\ndescription: D.\nmodel: anthropic/claude-haiku-4-5')),
  ]);
  expect(agents.map(({ name, tools, model }) => [name, tools, model])).toEqual([
    ['a', ['read', 'glob', 'list', 'shell', 'git', 'mcp__x__y'], undefined],
    ['b', ['read', 'list', 'glob', 'grep', 'commit', 'submit_plan', 'submit_result', 'find_tools', 'skill'], undefined],
    ['c', undefined, undefined],
    ['d', undefined, 'anthropic/claude-haiku-4-5'],
  ]);
  expect(warnings).toEqual([
    "a.md:4: drover has no tool 'WebFetch', so it is left out",
    "a.md:4: drover has no tool 'Bash(git:*)', so it is left out",
    "c.md:4: 'sonnet' is no provider/name, so the model of the workers is used",
  ]);
});

test('an agent of Codex is read from TOML, with the line of a mistake', async () => {
  const { agents, warnings } = await readAgentFiles([
    file('t.toml', 'name = "tester"\ndescription = "Tests."\ndeveloper_instructions = """\nTest it.\n"""\n'),
    file('broken.toml', 'name = "x"\ndescription = \n'),
    file('empty.md', markdown('name: empty\ndescription: E.', '')),
  ]);
  expect(agents).toEqual([{ name: 'tester', description: 'Tests.', prompt: 'Test it.' }]);
  expect(warnings.map((warning) => warning.replace(/\(.*\)/, '(…)'))).toEqual([
    'broken.toml:2: this is no TOML (…), so the agent is left out',
    'empty.md:2: an agent needs a prompt, so the agent is left out',
  ]);
});

test('hooks of Claude Code become hooks at the moments that match', () => {
  const settings = {
    hooks: {
      PreToolUse: [{ matcher: 'Bash', hooks: [{ type: 'command', command: './check', timeout: 5 }] }],
      SubagentStop: [{ hooks: [{ type: 'command', command: './done' }] }],
      Notification: [{ hooks: [{ type: 'command', command: './beep' }] }],
    },
  };
  const { hooks, warnings } = readClaudeHooks([file('s.json', JSON.stringify(settings))]);
  const common = { isOwn: false, form: 'claude' };
  expect(hooks).toEqual([
    {
      ...common,
      at: 'before call',
      event: 'PreToolUse',
      command: './check',
      tools: 'Bash',
      timeoutMs: 5_000,
      place: 's.json PreToolUse',
    },
    {
      ...common,
      at: 'after task',
      event: 'SubagentStop',
      command: './done',
      timeoutMs: 60_000,
      place: 's.json SubagentStop',
    },
  ]);
  expect(warnings).toEqual(['s.json: drover has no moment like Notification, so its hooks are left out']);
});

test.each([
  [
    '{"hooks": {"PreToolUse": [{"matcher": "(", "hooks": []}]}}',
    "PreToolUse: the matcher '(' is no regular expression",
  ],
  [
    '{"hooks": {"PreToolUse": [{"hooks": [{"type": "prompt"}]}]}}',
    'PreToolUse: a hook needs "type": "command" and a command',
  ],
  ['{"hooks": []}', 'hooks must be an object'],
  ['{"hooks": {\n', 'this is no JSON'],
])('a mistake in %s drops the hooks of the file, and is named', (text, problem) => {
  const { hooks, warnings } = readClaudeHooks([file('s.json', text)]);
  expect(hooks).toEqual([]);
  expect(warnings[0]?.replace(/line \d+: /, '')).toBe(`s.json: ${problem}; its hooks are left out`);
});

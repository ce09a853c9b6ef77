// drover trust over a whole project: every file that can make drover do something counts only as it was approved.

import { chmod, mkdir, rm, symlink } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { StrangeProject } from '../../support/doors/project.ts';
import { proves } from '../../support/proves.ts';

const FILES = {
  '.drover/config.yaml': 'model: anthropic/theirs\n',
  '.mcp.json': '{"mcpServers": {"files": {"command": "false", "args": ["-y", "evil"], "env": {"TOKEN": "x"}}}}',
  '.claude/settings.json':
    '{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./spy"}]}]}}',
  '.claude/skills/pdf/SKILL.md': '---\nname: pdf\ndescription: Reads PDF files.\n---\nRun scripts/read.py.\n',
  '.claude/skills/pdf/scripts/read.py': 'print(1)\n',
  '.claude/agents/reviewer.md': '---\nname: reviewer\ndescription: Reviews.\n---\nReview.\n',
  '.codex/agents/tester.toml': 'name = "tester"\n',
};
const NAMES = [
  '.drover/config.yaml',
  '.mcp.json',
  '.claude/settings.json',
  '.claude/skills/pdf',
  '.claude/agents/reviewer.md',
  '.codex/agents/tester.toml',
];

proves('trust.by-content', 'trust shows what each file would allow, and approves all of them', async () => {
  const project = await StrangeProject.with(FILES);
  expect(await project.counting()).toEqual([]);
  const { code, stdout } = await project.drover(['trust'], { typed: ['y'] });
  expect(code).toBe(0);
  for (const fact of [
    '.mcp.json (MCP servers)\n  starts the server files: false -y evil (sets TOKEN)\n',
    '.claude/settings.json (hooks)\n  runs at PreToolUse of Bash: ./spy\n',
    '.claude/skills/pdf (skill)\n  brings 2 files\n  brings programs that agents may run: scripts/read.py\n',
    '.claude/agents/reviewer.md (agent)\n  | ---\n  | name: reviewer\n',
  ])
    expect(stdout).toContain(fact);
  expect(await project.counting()).toEqual(NAMES);
  expect((await project.drover(['trust'])).stdout).toContain('are already approved.\n');
});

test.each(['.mcp.json', '.claude/settings.json', '.claude/skills/pdf/scripts/read.py', '.claude/agents/reviewer.md'])(
  'one byte more in %s asks again, for that entry only',
  async (name) => {
    const project = await StrangeProject.with(FILES);
    await project.drover(['trust', '--yes']);
    await project.write({ [name]: `${FILES[name as keyof typeof FILES]} ` });
    const entry = name.replace('/scripts/read.py', '');
    expect(await project.counting()).toEqual(NAMES.filter((each) => each !== entry));
    expect((await project.drover(['trust', '--yes'])).stdout.split('\n', 1)[0]).toMatch(entry);
    expect(await project.counting()).toEqual(NAMES);
  },
);

test('a new file, a renamed file and an executable bit change the approval of a skill', async () => {
  const project = await StrangeProject.with(FILES);
  const skill = join(project.top, '.claude/skills/pdf');
  const isApproved = async () => (await project.counting()).includes('.claude/skills/pdf');
  await project.drover(['trust', '--yes']);
  await project.write({ '.claude/skills/pdf/more.md': 'x' });
  expect(await isApproved()).toBe(false);
  await rm(join(skill, 'more.md'));
  expect(await isApproved()).toBe(true);
  await chmod(join(skill, 'scripts/read.py'), 0o755);
  expect(await isApproved()).toBe(false);
});

test('a link out of the repository is refused for files, folders and files in folders', async () => {
  const project = await StrangeProject.with({ '.claude/skills/inside/SKILL.md': '---\nname: inside\n---\n' });
  const outside = join(project.folder, 'outside');
  await project.write({ 'skill/SKILL.md': '---\nname: x\n---\n', 'agent.md': 'x', 'mcp.json': '{}' }, outside);
  await mkdir(join(project.top, '.claude/agents'));
  await symlink(join(outside, 'agent.md'), join(project.top, '.claude/agents/linked.md'));
  await symlink(join(outside, 'mcp.json'), join(project.top, '.mcp.json'));
  await symlink(join(outside, 'skill'), join(project.top, '.claude/skills/linked'));
  await symlink(join(outside, 'agent.md'), join(project.top, '.claude/skills/inside/more.md'));
  const { files } = await project.find(true);
  expect(files.map(({ name, read }) => [name, 'problem' in read])).toEqual([
    ['.mcp.json', true],
    ['.claude/skills/inside', true],
    ['.claude/skills/linked', true],
    ['.claude/agents/linked.md', true],
  ]);
  expect(await project.counting(true)).toEqual([]);
});

test('a command names what it ignores; --trust-project counts it, and says so', async () => {
  const project = await StrangeProject.with({ ...FILES, 'script.yaml': 'answers: [{text: hi}]\n' });
  const typed = ['exec', 'hello', '--model', 'rehearsal/script.yaml', '--view', 'silent'];
  const list = NAMES.slice(1).map((name) => name.replace(/^(?!\.mcp).*/, (each) => `${each} (${KIND[each]})`));
  expect((await project.drover(typed)).stderr).toContain(
    `drover: this project's ${list.join(', ')} are not approved, so they are ignored; look at them with: drover trust\n`,
  );
  for (const env of [{}, { CI: 'true' }]) {
    const { stderr } = await project.drover([...typed, '--trust-project', '--sandbox', 'off'], { env });
    expect(stderr).toContain(
      `drover: --trust-project: these files count as approved: .drover/config.yaml (config), ${list.join(', ')}\n`,
    );
  }
});

const KIND: Readonly<Record<string, string>> = {
  '.claude/settings.json': 'hooks',
  '.claude/skills/pdf': 'skill',
  '.claude/agents/reviewer.md': 'agent',
  '.codex/agents/tester.toml': 'agent',
};

test('folders of the user in HOME and the state folder of drover are not projects', async () => {
  const project = await StrangeProject.with({});
  await project.write(FILES, project.user);
  const given = { cwd: project.user, env: { DROVER_HOME: join(project.user, '.drover') } };
  const { code, stdout } = await project.drover(['trust', '--yes'], given);
  expect([code, stdout.match(/^\S+ \(.*\)$/gm)]).toEqual([0, ['.mcp.json (MCP servers)']]);
});

test('a batch spec of the project runs no command before it is approved', async () => {
  const spec = 'version: 1\nselect:\n  command: touch proof; echo a.txt\ntask:\n  prompt: x\n  gate: "true"\n';
  const project = await StrangeProject.with({ 'batch.yaml': spec });
  const proof = join(project.top, 'proof');
  for (const env of [{}, { CI: 'true' }]) {
    const { code, stderr } = await project.drover(['batch', 'batch.yaml', '--list'], { env });
    expect([code, stderr]).toEqual([
      2,
      'drover: batch.yaml belongs to this project and names commands (select.command, task.gate), so it needs your approval; look at it with: drover trust batch.yaml, or pass --trust-project\n',
    ]);
  }
  expect(existsSync(proof)).toBe(false);
  const { stdout } = await project.drover(['trust', 'batch.yaml', '--yes']);
  expect(stdout).toContain('batch.yaml\n  | version: 1\n  | select:\n  |   command: touch proof; echo a.txt\n');
  // The next error: the fixture's .git folder is empty.
  expect((await project.drover(['batch', 'batch.yaml', '--list'])).stderr).toContain('not in a git repository');
  await project.write({ 'batch.yaml': `${spec}# more\n` });
  expect((await project.drover(['batch', 'batch.yaml', '--list'])).stderr).toContain('needs your approval');
  const trusted = await project.drover(['batch', 'batch.yaml', '--list', '--trust-project']);
  expect(trusted.stderr).toContain('drover: --trust-project: batch.yaml counts as approved\n');
});

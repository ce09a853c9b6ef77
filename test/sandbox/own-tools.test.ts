// Drover's own tools in a hostile workspace: a worker may write the .git of its workspace, and exchange folders.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Json } from '@drover/protocol/json';
import { ripgrepFile } from '@drover/core/tools/files/ripgrep';
import { glob } from '@drover/core/tools/glob';
import { grep } from '@drover/core/tools/grep';
import { runTool, type Tool } from '@drover/core/tools/tool';
import { expect, test } from 'vitest';
import { runSync } from '../support/process/run-sync.ts';
import { calls, planned, RunDesk, statuses, submits } from '../support/run/run-desk.ts';
import { box, inSandbox } from '../support/sandbox/box.ts';
import { MARK } from '../support/sandbox/hostile/world.ts';

const LOG = calls('git', { action: 'log' });
const DIFF = calls('git', { action: 'diff', revision: 'HEAD' });

/** A user's repository, next to the workspace. */
function makePrivateRepository(folder: string): void {
  const path = join(folder, 'private');
  mkdirSync(path);
  writeFileSync(join(path, 'secret.txt'), `${MARK}\n`);
  const git = (...args: readonly string[]) =>
    runSync('git', ['-c', 'user.name=A Person', '-c', 'user.email=person@example.com', ...args], { cwd: path });
  git('init', '-q', '-b', 'main');
  git('add', '-A');
  git('commit', '-q', '-m', MARK);
}

inSandbox('drover’s own tools in a hostile workspace', (system) => {
  test.each([
    ['a .git file', 'rm -rf .git; echo "gitdir: $(cat place)/.git" > .git'],
    ['a work tree', 'git config core.worktree "$(cat place)"'],
    ['alternates', 'echo "$(cat place)/.git/objects" >> .git/objects/info/alternates'],
  ])('the git tool shows nothing of a repository elsewhere, named by %s', async (_, command) => {
    const answers = [calls('shell', { command }), LOG, DIFF, submits('done')];
    const desk = await RunDesk.with(planned({ one: { answers } }));
    makePrivateRepository(desk.folder);
    await desk.write({ place: join(desk.folder, 'private') });
    desk.git('add', '-A');
    desk.git('-c', 'user.name=A Person', '-c', 'user.email=person@example.com', 'commit', '-q', '-m', 'place');
    const ran = await desk.run(['run', 'go']);
    const sent = desk.server.requests.map(({ rawBody, body }) => `${rawBody}${JSON.stringify(body)}`).join('');
    expect(Object.keys(statuses(ran.end))).toEqual(['one']);
    expect(sent).not.toContain(MARK);
  });

  test('searches run in the sandbox, and say what is wrong', async () => {
    const { policy, root } = box(system);
    for (const [name, text] of Object.entries({ 'seen.txt': 'needle 1\n', "it's.txt": 'needle 2\n', hidden: MARK }))
      writeFileSync(join(root, name), `needle\n${text}`);
    const shown = { ...policy, hidden: [join(root, 'hidden')], readable: [await ripgrepFile()] };
    const context = {
      cwd: root,
      env: { PATH: '/usr/bin:/bin' },
      outputFolder: join(policy.folder, 'out'),
      sandbox: shown,
    };
    const call = { callId: 'call_1', signal: new AbortController().signal };
    const search = async (tool: Tool, input: Json) => {
      const parsed = tool.parse(input);
      if (!parsed.ok) throw new Error(parsed.problem);
      return (await runTool(tool, parsed.input, { ...context, ...call })).output;
    };
    expect(await search(grep, { pattern: 'needle .|MARK' })).toBe("it's.txt:2:needle 2\nseen.txt:2:needle 1");
    expect(await search(glob, { pattern: '*.txt' })).toBe("it's.txt\nseen.txt");
    expect(await search(grep, { pattern: 'a(b' })).toMatch(/^regex parse error:[^]*unclosed group$/);
    expect(await search(grep, { pattern: 'nowhere' })).toBe('no matches');
  });

  test.each(['.gitignore', 'docs/.gitattributes'])('a pipe named %s holds up no commit', async (name) => {
    const command = `mkdir -p docs; mkfifo ${name}; echo new > new.txt`;
    const desk = await RunDesk.with(planned({ one: { answers: [calls('shell', { command }), submits('done')] } }));
    const ran = await desk.run(['run', 'go']);
    expect(statuses(ran.end)).toEqual({ one: 'landed' });
    expect(desk.delivered(ran.end.run ?? '')).toEqual({ 'a.txt': 'one', 'new.txt': 'new' });
  });
});

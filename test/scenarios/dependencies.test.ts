// Installed dependencies of an npm project: worker and gate find the checkout's, and cannot change them.

import { chmod, mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { calls, planned, RunDesk, statuses, submits, writes } from '../support/run/run-desk.ts';
import { inSandbox } from '../support/sandbox/box.ts';

const FILES = {
  '.gitignore': 'node_modules/\n',
  'package.json': '{"name":"p","private":true,"workspaces":["packages/*"],"scripts":{"test":"mytest"}}\n',
  'package-lock.json': '{"name":"p","lockfileVersion":3,"packages":{}}\n',
  'packages/a/index.js': 'module.exports = "checkout";\n',
  'packages/a/package.json': '{"name":"a","version":"1.0.0"}\n',
};
const MYTEST = '#!/usr/bin/env node\nconsole.log("a is", require("a"), require("mine"))\n';
const NPM = ['--gate', 'npm test'];

/** The layout that npm makes: a program, a link to a package of the monorepo, and that package's own folder. */
async function npmProject(desk: RunDesk): Promise<RunDesk> {
  await desk.write({
    'node_modules/mytest/cli.js': MYTEST,
    'node_modules/mine/index.js': 'module.exports = "installed";\n',
    'packages/a/node_modules/inner/index.js': 'module.exports = "inner";\n',
  });
  const modules = join(desk.repository, 'node_modules');
  await mkdir(join(modules, '.bin'));
  await chmod(join(modules, 'mytest/cli.js'), 0o755);
  await symlink('../mytest/cli.js', join(modules, '.bin/mytest'));
  await symlink('../packages/a', join(modules, 'a'));
  return desk;
}

const work = (command: string) =>
  planned({
    one: {
      answers: [
        writes('packages/a/index.js', 'module.exports = require("inner") + " worker";\n'),
        calls('shell', { command }),
        submits('done'),
      ],
    },
  });

const shown = (events: Awaited<ReturnType<RunDesk['run']>>['events'], type: 'gate_end' | 'tool_execution_end') =>
  events.flatMap((event) =>
    event.type === type && (!('name' in event) || event.name === 'shell') ? [event.output] : [],
  );

inSandbox('dependencies in the sandbox', () => {
  test('npm test passes in workspaces and tests the worker’s packages', async () => {
    const desk = await npmProject(await RunDesk.with(work('npm test'), FILES));
    const { code, end, events, stderr } = await desk.run(['run', 'go', '--yes', ...NPM]);
    expect([code, statuses(end)]).toEqual([0, { one: 'landed' }]);
    expect(shown(events, 'gate_end').at(-1)).toContain('a is inner worker installed');
    expect(stderr).toContain('each workspace gets your node_modules, packages/a/node_modules, read-only');
    const merged = end.delivered?.commit ?? '';
    expect(desk.git('diff', '--name-only', 'main', merged)).toBe('packages/a/index.js');
  });

  test('a worker cannot change shared dependencies, but can write .cache and .vite', async () => {
    const tries = ['mine/index.js', '.cache/x', '.vite/x'].map(
      (path) => `(echo x > node_modules/${path}) && echo ${path}`,
    );
    const desk = await npmProject(await RunDesk.with(work(`${tries.join('; ')}; rm -rf node_modules/; true`), FILES));
    const { code, events } = await desk.run(['run', 'go', '--yes', ...NPM]);
    expect(code).toBe(0);
    const [output = ''] = shown(events, 'tool_execution_end');
    expect(output).toContain('node_modules/mine/index.js: Read-only file system');
    expect(output.split('\n').filter((line) => /^\.\w+\/x$/.test(line))).toEqual(['.cache/x', '.vite/x']);
    expect(await desk.read('node_modules/mine/index.js')).toBe('module.exports = "installed";\n');
  });
});

test('without a sandbox npm test passes on a private copy of the dependencies', async () => {
  const command = 'rm node_modules/mine/index.js && echo "module.exports = 1" > node_modules/mine/index.js && npm test';
  const desk = await npmProject(await RunDesk.with(work(command), FILES));
  const { code, end, events } = await desk.run(['run', 'go', '--yes', '--allow', 'shell', '--sandbox', 'off', ...NPM], {
    // npm would write its logs into the checkout.
    env: { HOME: desk.folder },
  });
  expect([code, statuses(end)]).toEqual([0, { one: 'landed' }]);
  expect(shown(events, 'tool_execution_end')[0]).toContain('a is inner worker 1');
  expect(shown(events, 'gate_end').at(-1)).toContain('a is inner worker installed');
  expect(await desk.read('node_modules/mine/index.js')).toBe('module.exports = "installed";\n');
});

test('a run without a terminal or --yes asks for --setup before any request', async () => {
  const desk = await npmProject(await RunDesk.with(work('true'), FILES));
  const { code, stderr } = await desk.drover(['run', 'go', ...NPM]);
  expect([code, desk.server.requests.length]).toEqual([2, 0]);
  expect(stderr).toContain('workspaces would lack node_modules, packages/a/node_modules');
  expect(stderr).toContain('--setup auto');
});

test('--setup none leaves dependencies out, and --setup auto brings them', async () => {
  const desk = await npmProject(await RunDesk.with(work('true'), FILES));
  const gate = ['--gate', 'test -d node_modules/mine'];
  expect((await desk.run(['run', 'go', '--setup', 'none', ...gate])).code).toBe(4);
  expect((await desk.run(['run', 'go', '--setup', 'auto', ...gate])).code).toBe(0);
});

test('node_modules without a lockfile is brought, too', async () => {
  const { 'package-lock.json': _, ...files } = FILES;
  const desk = await npmProject(await RunDesk.with(work('true'), files));
  const { code, stderr } = await desk.run(['run', 'go', '--yes', '--gate', 'test -d node_modules/mine']);
  expect([code, stderr]).toEqual([0, expect.stringContaining('each workspace gets your node_modules')]);
});

test('a lockfile with packages that are not installed is named before any request', async () => {
  const lock = '{"name":"p","lockfileVersion":3,"packages":{"node_modules/mine":{"version":"1.0.0"}}}\n';
  const desk = await RunDesk.with(IDLE, { ...FILES, 'package-lock.json': lock });
  const { stderr } = await desk.run(['run', 'go', '--yes', '--gate', 'true']);
  expect(stderr).toContain('package-lock.json names packages, but node_modules is not there');
  const empty = await RunDesk.with(IDLE, FILES);
  expect((await empty.run(['run', 'go', '--yes', '--gate', 'true'])).stderr).not.toContain('names packages');
});

test('a venv is made anew from a manifest, and one that nothing explains is named', async () => {
  const files = { '.gitignore': '.venv/\n', 'pyproject.toml': '[project]\nname = "p"\nversion = "1"\n' };
  const desk = await RunDesk.with(IDLE, files);
  await desk.write({ '.venv/pyvenv.cfg': 'home = nowhere\n' });
  const asked = await desk.drover(['run', 'go', '--gate', 'true']);
  expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining('.venv/bin/python -m pip install -q -e .')]);
  const bare = await RunDesk.with(IDLE, { '.gitignore': '.venv/\n' });
  await bare.write({ '.venv/pyvenv.cfg': 'home = nowhere\n' });
  const { code, stderr } = await bare.run(['run', 'go', '--gate', 'true']);
  expect([code, stderr]).toEqual([0, expect.stringContaining('workspaces will lack .venv, and no lockfile says how')]);
});

test('without a sandbox, packages that pnpm updated between two runs reach the second', async () => {
  const desk = await RunDesk.with(IDLE, { '.gitignore': 'node_modules/\n', 'pnpm-lock.yaml': 'lockfileVersion: 9\n' });
  const install = (version: string) =>
    desk.write({ 'node_modules/x/v': version, 'node_modules/.modules.yaml': `hoist: ${version}\n` });
  const run = (version: string) => {
    const gate = `test $(cat node_modules/x/v) = ${version}`;
    return desk.run(['run', 'go', '--yes', '--sandbox', 'off', '--gate', gate]);
  };
  await install('1');
  expect((await run('1')).code).toBe(0);
  await install('2');
  expect((await run('2')).code).toBe(0);
});

const IDLE = planned({ one: { answers: [writes('b.txt', 'b\n'), submits('b')] } });

test('a lockfile whose tool is missing stops the run before any request', async () => {
  const desk = await RunDesk.with(IDLE, { '.gitignore': 'vendor/\n', 'composer.lock': '{}\n' });
  await desk.write({ 'vendor/autoload.php': '<?php\n' });
  const { code, stderr } = await desk.drover(['run', 'go', '--yes'], { env: { PATH: '/usr/bin:/bin' } });
  expect([code, desk.server.requests.length]).toEqual([2, 0]);
  expect(stderr).toContain('composer.lock needs composer, which is not on the PATH');
});

test('a Cargo project shares no target folder, and needs no setup', async () => {
  const desk = await RunDesk.with(IDLE, { '.gitignore': 'target/\n', 'Cargo.lock': 'version = 4\n' });
  await desk.write({ 'target/debug/x': 'x\n' });
  const { code } = await desk.run(['run', 'go', '--gate', 'test ! -e target']);
  expect(code).toBe(0);
});

test('an answer at the terminal is stored, and holds for later runs', async () => {
  const desk = await npmProject(await RunDesk.with(IDLE, FILES));
  const first = await desk.run(['run', 'go', '--gate', 'test -d node_modules/mine'], { typed: ['', 'y'] });
  expect(first.stderr).toContain('Workspaces would lack node_modules');
  expect(first.code).toBe(0);
  const later = await desk.run(['run', 'go', '--gate', 'test -d node_modules/mine']);
  expect([later.code, later.stderr.includes('would lack')]).toEqual([0, false]);
});

test('a stray key is not a setup command, and --setup replaces a stored answer', async () => {
  const desk = await npmProject(await RunDesk.with(IDLE, FILES));
  const asked = await desk.run(['run', 'go'], { typed: ['x', 'c', '\u001B[B', 'true ready', 'y'] });
  expect(asked.stderr).toContain("'x' cannot prepare a workspace: there is no command x");
  expect(asked.stderr).toContain("'c' cannot prepare a workspace: type the command itself");
  expect(asked.stderr).toContain("'\\u{1b}[B' cannot prepare a workspace: a key other than a letter was pressed");
  const stored = await desk.run(['run', 'go']);
  expect(stored.stderr).toContain("workspaces are prepared by 'true ready', your answer for this project");
  await desk.run(['run', 'go', '--setup', 'true again']);
  expect((await desk.run(['run', 'go'])).stderr).toContain("workspaces are prepared by 'true again'");
});

test('without a sandbox the audit finds a changed dependency, and nothing is delivered', async () => {
  const command = 'chmod u+w node_modules/mine/index.js && echo "// mine" >> node_modules/mine/index.js';
  const desk = await npmProject(await RunDesk.with(work(command), FILES));
  const open = ['--yes', '--allow', 'shell', '--sandbox', 'off'];
  const { code, end } = await desk.run(['run', 'go', ...open]);
  expect([code, end.failure, end.delivered]).toEqual([
    8,
    { kind: 'dependencies.changed', paths: ['node_modules/mine/index.js'] },
    undefined,
  ]);
  expect(await desk.read('node_modules/mine/index.js')).toBe('module.exports = "installed";\n');
});

test('.worktreeinclude copies what it matches and git ignores, and a link is warned of', async () => {
  const files = { '.gitignore': '*.local\nlinked\n', '.worktreeinclude': '*.local\n!b.local\nopen.txt\n' };
  const desk = await RunDesk.with(IDLE, files);
  await desk.write({ 'a.local': 'a\n', 'b.local': 'b\n', 'd/c.local': 'c\n', 'linked/x': 'x\n' });
  await desk.write({ '.drover/include': 'linked link\n' });
  const gate = 'test -f a.local -a -f d/c.local -a ! -e b.local -a -L linked';
  const { code, events } = await desk.run(['run', 'go', '--gate', gate]);
  expect(code).toBe(0);
  const warnings = events.flatMap((event) => (event.type === 'warning' ? [event.message] : []));
  expect(warnings.join('\n')).toContain('.drover/include links linked to your checkout');
});

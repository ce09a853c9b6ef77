// Odd places of Node, toolchains and temporary files: the sandbox starts, and shows nothing else of their surroundings.

import {
  copyFileSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { openSandbox, type SandboxPlace } from '@drover/sandbox/open';
import { expect, onTestFinished, test } from 'vitest';
import { box, inSandbox, runInside, temporary } from '../support/sandbox/box.ts';

/** A folder inside another, removed after the test. */
function folderIn(parent: string): string {
  const folder = realpathSync(mkdtempSync(join(parent, 'drover-place-')));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A copy of Node as a single file. */
function installNode(path: string): string {
  mkdirSync(dirname(path), { recursive: true });
  try {
    linkSync(process.execPath, path);
  } catch {
    copyFileSync(process.execPath, path); // a different file system
  }
  return path;
}

function open(given: Partial<SandboxPlace>) {
  const { platform, arch: architecture, execPath: node, env } = process;
  const state = given.state ?? temporary();
  return openSandbox({ env, node, platform, architecture, ...given, state }, { again: true });
}

async function systemWith(given: Partial<SandboxPlace>) {
  const found = await open(given);
  if (!found.works) throw new Error(`${found.missing}; ${found.fix}`);
  return found.system;
}

inSandbox('a sandbox with odd places', () => {
  test.each([
    ['below /tmp', '/tmp', 'bin/node'],
    ['below /var/tmp', '/var/tmp', 'bin/node'],
    ['below a path with spaces and a quote', '/tmp', "it's my tools/bin/node"],
    ['in a folder that has libraries', '/tmp', 'installed/bin/node'],
  ])('Node runs in the box, read-only, %s', async (_, parent, name) => {
    const folder = folderIn(parent);
    const node = installNode(join(folder, name));
    if (name.startsWith('installed')) mkdirSync(join(folder, 'installed', 'lib'));
    writeFileSync(join(folder, 'secret'), 'a secret');
    const here = box(await systemWith({ node }));
    const script = `"${node}" -p '6 * 7'; cat "${folder}/secret"; touch "${dirname(node)}/new"; ls -A "${folder}"`;
    const { output } = await runInside(here, script);
    expect(output.split('\n')).toEqual([
      '42',
      `cat: ${`${folder}/secret`}: No such file or directory`,
      expect.stringContaining('Read-only file system'),
      name.split('/')[0],
      '',
    ]);
  });

  test.each(['/tmp', 'HOME'])('Node directly in %s is shown without its neighbours', async (place) => {
    const home = temporary();
    const folder = place === 'HOME' ? home : place;
    const node = installNode(join(folder, `drover-node-${process.pid}`));
    onTestFinished(() => rmSync(node));
    writeFileSync(join(home, 'secret'), 'a secret');
    const here = box(await systemWith({ node, env: { ...process.env, HOME: home } }));
    const { output } = await runInside(here, `"${node}" -p '6 * 7'; cat "${home}/secret"`);
    expect(output).toBe(`42\ncat: ${home}/secret: No such file or directory\n`);
  });

  test('a link to Node below HOME runs the Node that it leads to', async () => {
    const home = folderIn('/tmp');
    const node = installNode(join(home, 'versions', 'node'));
    symlinkSync('versions/node', join(home, 'current'));
    const system = await systemWith({ node: join(home, 'current'), env: { ...process.env, HOME: home } });
    const { output } = await runInside(box(system), `"${system.node}" -p '6 * 7'`);
    expect({ node: system.node, output }).toEqual({ node, output: '42\n' });
  });

  test('a PATH entry below /tmp is shown, and /tmp itself as a PATH entry is not', async () => {
    const folder = folderIn('/tmp');
    mkdirSync(join(folder, 'tools'));
    writeFileSync(join(folder, 'tools', 'greet'), '#!/bin/sh\necho hello\n', { mode: 0o755 });
    writeFileSync(join(folder, 'secret'), 'a secret');
    const PATH = `${join(folder, 'tools')}:/tmp:${process.env['PATH'] ?? ''}`;
    const system = await systemWith({ env: { ...process.env, PATH } });
    const { output } = await runInside(box(system), `greet; cat ${folder}/secret`, { env: { PATH } });
    expect(output).toBe(`hello\ncat: ${folder}/secret: No such file or directory\n`);
  });

  test.each(['/var/tmp', '/dev/shm', "a folder with a quote'", 'a link', 'a missing folder'])(
    'the probe works if TMPDIR is %s',
    async (place) => {
      const before = process.env['TMPDIR'];
      const state = temporary();
      const around = folderIn(tmpdir());
      const path = place.startsWith('/') ? place : join(around, place);
      if (place.includes('quote')) mkdirSync(path);
      if (place === 'a link') symlinkSync(state, path);
      onTestFinished(() => {
        if (before === undefined) delete process.env['TMPDIR'];
        else process.env['TMPDIR'] = before;
      });
      process.env['TMPDIR'] = path;
      const found = await open({ state });
      expect(found.works ? found.checks.filter(({ contained }) => !contained) : found.missing).toEqual([]);
    },
  );

  test('a project below /var/tmp is writable, and its neighbours are hidden', async () => {
    const around = folderIn('/var/tmp');
    mkdirSync(join(around, 'root'));
    writeFileSync(join(around, 'secret'), 'a secret');
    const here = box(await systemWith({}), { root: join(around, 'root') });
    const { output } = await runInside(here, 'echo x > new; cat new; cat ../secret; touch /var/tmp/a; ls /tmp/a');
    expect(output).toBe('x\ncat: ../secret: No such file or directory\n/tmp/a\n');
  });

  test('a Node that cannot run gives one line of reason and no advice about containers', async () => {
    const node = join(temporary(), 'node');
    writeFileSync(node, '#!/bin/sh\necho first; echo second: Permission denied\n', { mode: 0o755 });
    const found = await open({ node });
    expect(found).toEqual({
      works: false,
      missing: 'the attempts to leave the sandbox broke off: first second: Permission denied',
      fix: `check that ${node} can run, or report this with the output of drover doctor`,
      checks: [],
    });
  });

  test.each(['/tmp', 'HOME'])('a link left in the private %s leads no later box outside', async (place) => {
    const home = folderIn('/var/tmp');
    const around = place === 'HOME' ? home : folderIn('/tmp');
    const tools = join(around, 'a', 'tools');
    mkdirSync(tools, { recursive: true });
    const victim = temporary();
    const here = box(await systemWith({}), { home, readable: [tools] });
    const above = join(around, 'a');
    const attack = `mv ${above} ${above}-moved; ln -s /oldroot${victim} ${above}; ls -d ${tools}`;
    for (let round = 0; round < 2; round++)
      expect((await runInside(here, attack)).output.split('\n').at(-2)).toBe(tools);
    expect(readdirSync(victim)).toEqual([]);
  });

  test('a link that an earlier session left in the private HOME is renamed', async () => {
    const home = folderIn('/var/tmp');
    const tools = join(home, 'a', 'tools');
    mkdirSync(tools, { recursive: true });
    const victim = temporary();
    const here = box(await systemWith({}), { home, readable: [tools] });
    symlinkSync(`/oldroot${victim}`, join(here.policy.folder, 'home', 'a'));
    expect((await runInside(here, `ls -d ${tools}`)).output).toBe(`${tools}\n`);
    expect(readdirSync(victim)).toEqual([]);
  });
});

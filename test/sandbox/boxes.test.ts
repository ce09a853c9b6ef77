// Sandboxes started ahead: used once, only while a new one would be the same, and never left behind.

import { spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { keepProcessBoxes } from '@drover/core/tools/process/boxes';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import { unsealSandboxPaths } from '@drover/sandbox/seal';
import { expect, onTestFinished, test } from 'vitest';
import { openLauncher } from '../../bin/run/open-launcher.ts';
import { processesWith } from '../cli/program.ts';
import { listening } from '../support/serve/listening.ts';
import { box, type Box, type BoxOptions, inSandbox, runInside } from '../support/sandbox/box.ts';
import { allGone, waiting } from '../support/sandbox/waiting.ts';
import { until } from '../support/until.ts';

inSandbox('a sandbox started ahead', (system) => {
  function keptBox(options?: BoxOptions): Box & { readonly close: () => void } {
    const here = box(system, options);
    const boxes = keepProcessBoxes(here.policy);
    const close = () => boxes[Symbol.dispose]();
    onTestFinished(close);
    return { ...here, close };
  }

  test('the next command uses it, and it ends with that command', async () => {
    const here = keptBox();
    await runInside(here, 'true');
    const shell = await waiting(here);
    const seen = runInside(here, 'touch begun; while [ ! -e go ]; do sleep 0.01; done; echo done');
    await until(() => existsSync(join(here.root, 'begun')));
    // The waiting shell has become the command's shell.
    expect(processesWith('touch begun')).toContain(shell);
    writeFileSync(join(here.root, 'go'), '');
    expect((await seen).output).toBe('done\n');
    expect(processesWith('touch begun')).not.toContain(shell);
    expect(await waiting(here)).not.toBe(shell);
  });

  test('none waits before the first command, unless kept, or after the end', async () => {
    const plain = box(system);
    await runInside(plain, 'true');
    const here = keptBox();
    expect(processesWith(here.policy.folder)).toEqual([]);
    await runInside(here, 'true');
    await waiting(here);
    here.close();
    await allGone(here);
    await runInside(here, 'true');
    // The command has ended, and so has its box.
    expect([plain, here].flatMap(({ policy }) => processesWith(policy.folder))).toEqual([]);
  });

  test('one that is still starting when sandboxes are no longer kept is removed', async () => {
    // The launcher takes a while to start a process.
    const launcher = openLauncher(childProcessEnvironment(process.env));
    onTestFinished(() => launcher.close());
    await listening(launcher.address.path);
    const here = keptBox();
    await runInside(here, 'true');
    here.close();
    // The launcher would answer this only after it has started the box.
    await runInside(here, 'true');
    await allGone(here);
  });

  test('a folder replaced since is shown as it is now', async () => {
    const there = join(box(system).around, 'there');
    const replace = (text: string) => {
      rmSync(there, { recursive: true, force: true });
      mkdirSync(there);
      writeFileSync(join(there, 'file'), text);
    };
    replace('old');
    const here = keptBox({ readable: [there] });
    expect((await runInside(here, `cat ${there}/file`)).output).toBe('old');
    await waiting(here);
    replace('new');
    expect((await runInside(here, `cat ${there}/file`)).output).toBe('new');
  });

  test('a hidden file created since is hidden', async () => {
    const around = box(system).around;
    const secret = join(around, 'root', 'secret');
    const here = keptBox({ root: join(around, 'root'), hidden: [secret] });
    await runInside(here, 'true');
    await waiting(here);
    writeFileSync(secret, 'a secret');
    expect((await runInside(here, 'cat secret')).output).not.toContain('a secret');
  });

  test('a folder replaced by a link since is a failure, and shows nothing', async () => {
    const here = keptBox();
    const outside = join(here.around, 'outside');
    mkdirSync(outside);
    writeFileSync(join(outside, 'secret'), 'a secret');
    await runInside(here, 'true');
    await waiting(here);
    renameSync(here.root, `${here.root}-moved`);
    symlinkSync(outside, here.root);
    await expect(runInside(here, 'cat secret; touch made')).rejects.toThrow('was replaced by a symbolic link');
    expect(readdirSync(outside)).toEqual(['secret']);
  });

  test.each(['root', 'readable'] as const)('a link above the %s folder since is a failure', async (which) => {
    const around = box(system).around;
    const [above, outside] = [join(around, 'above'), join(around, 'outside')];
    for (const folder of [above, outside]) mkdirSync(join(folder, 'shown'), { recursive: true });
    writeFileSync(join(outside, 'shown', 'secret'), 'a secret');
    const shown = join(above, 'shown');
    const here = keptBox(which === 'root' ? { root: shown } : { readable: [shown] });
    await runInside(here, 'true');
    await waiting(here);
    renameSync(above, `${above}-moved`);
    symlinkSync(outside, above);
    await expect(runInside(here, `cat ${shown}/secret; touch ${shown}/made`)).rejects.toThrow(
      `${shown} was replaced by a symbolic link`,
    );
    expect(readdirSync(join(outside, 'shown'))).toEqual(['secret']);
  });

  test('a .git renamed and made again since is sealed', async () => {
    const root = join(box(system).around, 'root');
    const git = join(root, '.git');
    mkdirSync(git, { recursive: true });
    const here = keptBox({ root, sealed: [git] });
    await runInside(here, 'true');
    await waiting(here);
    renameSync(git, `${git}-moved`);
    mkdirSync(git);
    writeFileSync(join(git, 'config'), 'new');
    const { output } = await runInside(here, 'cat .git/config; echo bad > .git/config; mv .git other');
    expect(output).toContain('new');
    expect({ files: readdirSync(git), text: readFileSync(join(git, 'config'), 'utf8') }).toEqual({
      files: ['config'],
      text: 'new',
    });
  });

  test('two sessions in one folder each use their own', async () => {
    const root = join(box(system).around, 'root');
    const sealed = [join(root, '.envrc')];
    const [one, two] = [keptBox({ root, sealed }), keptBox({ root, sealed })];
    await Promise.all([one, two].map((here) => runInside(here, 'true')));
    await Promise.all([one, two].map(waiting));
    await runInside(one, 'echo one > /tmp/mine');
    await runInside(two, 'echo two > /tmp/mine');
    one.close();
    unsealSandboxPaths(one.policy.folder);
    const { output } = await runInside(two, 'cat /tmp/mine; echo bad > .envrc/run');
    expect(output).toContain('two\n');
    expect(readdirSync(root)).toEqual(['.envrc']);
    expect(readdirSync(join(root, '.envrc'))).toEqual([]);
    unsealSandboxPaths(two.policy.folder);
  });

  test('none is left by a drover that was killed', async () => {
    const here = box(system);
    const place = JSON.stringify({ sandbox: here.policy, cwd: here.root, env: { PATH: '/usr/bin:/bin' } });
    const script = `import { keepProcessBoxes, startProcessBoxAhead } from '@drover/core/tools/process/boxes';
      const place = ${place};
      keepProcessBoxes(place.sandbox);
      startProcessBoxAhead(place);
      setInterval(() => undefined, 1_000);`;
    const drover = spawn(process.execPath, ['--input-type=module', '-e', script], { cwd: import.meta.dirname });
    onTestFinished(() => void drover.kill('SIGKILL'));
    await waiting(here);
    drover.kill('SIGKILL');
    await allGone(here);
  });

  test('a policy that hides or seals more since holds', async () => {
    const here = keptBox();
    const [secret, sealed] = [join(here.root, 'secret'), join(here.root, '.envrc')];
    writeFileSync(secret, 'a secret');
    await runInside(here, 'true');
    await waiting(here);
    const policy = { ...here.policy, hidden: [secret], sealed: [sealed] };
    const { output } = await runInside(
      { ...here, policy },
      'cat secret; echo bad > .envrc/run; rmdir .envrc; ls .envrc',
    );
    expect(output).not.toContain('a secret');
    expect(readdirSync(sealed)).toEqual([]);
  });

  test('a placeholder that another drover removed since is sealed again', async () => {
    const root = join(box(system).around, 'root');
    const sealed = join(root, '.envrc');
    const here = keptBox({ root, sealed: [sealed] });
    await runInside(here, 'true');
    await waiting(here);
    rmSync(sealed, { recursive: true });
    await runInside(here, 'rmdir .envrc; mkdir -p .envrc; echo bad > .envrc/run');
    expect(readdirSync(sealed)).toEqual([]);
  });

  test('a command has its own environment', async () => {
    const here = keptBox();
    const env = (WHO: string) => ({ env: { ...childProcessEnvironment(process.env), WHO } });
    expect((await runInside(here, 'echo $WHO', env('one'))).output).toBe('one\n');
    await waiting(here);
    expect((await runInside(here, 'echo $WHO', env('two'))).output).toBe('two\n');
  });

  test('a killed one is replaced', async () => {
    const here = keptBox();
    await runInside(here, 'true');
    const shell = await waiting(here);
    const sandbox = processesWith(here.policy.folder).map((id) => `/proc/${id}`);
    process.kill(Number(shell), 'SIGKILL');
    // The files are removed when this process learns that the box has ended; the end of its report follows at once.
    await until(() => !sandbox.some((entry) => existsSync(entry)));
    await delay(50);
    expect((await runInside(here, 'echo fine')).output).toBe('fine\n');
  });

  test('a command sees nothing from the previous one', async () => {
    const here = keptBox();
    await runInside(here, 'cd /tmp; export LEFT=1; (sleep 77 &); true');
    await waiting(here);
    const script = 'pwd; echo "${LEFT-}${REPLY-}"; cat; ls -d /proc/[0-9]* | wc -l';
    const { output } = await runInside(here, script);
    const [folder, left, count] = output.split('\n');
    expect({ folder, left, isAlone: Number(count) <= 4 }).toEqual({ folder: here.root, left: '', isAlone: true });
  });
});

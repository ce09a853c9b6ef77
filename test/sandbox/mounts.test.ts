// The file system of a policy: bubblewrap's arguments, and their effect on real commands.

import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { bubblewrapArguments, bubblewrapMounts } from '@drover/sandbox/linux/bubblewrap';
import type { SandboxPolicy } from '@drover/sandbox/policy';
import { unsealSandboxPaths } from '@drover/sandbox/seal';
import { expect, test } from 'vitest';
import { sandboxProjectView } from '../../bin/sandbox/project-view.ts';
import { box, inSandbox, runInside, temporary } from '../support/sandbox/box.ts';
import { POLICY } from '../support/sandbox/policy.ts';

const shown = (policy: Partial<SandboxPolicy>) =>
  bubblewrapMounts({ ...POLICY, ...policy }).map(({ kind, from, at }) => `${kind} ${from} ${at}`);

test('the arguments of a policy come in the order in which they are mounted', () => {
  expect(bubblewrapArguments({ ...POLICY, proxy: { socket: '/s/proxy', rules: [] } }).join(' ')).toBe(
    [
      '--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-net --unshare-cgroup-try',
      '--die-with-parent --new-session --cap-drop ALL --hostname drover --disable-userns --seccomp 3 --json-status-fd 4',
      '--ro-bind /usr /usr --symlink usr/bin /bin --ro-bind /s/etc /etc --ro-bind-try /etc/ssl/certs /etc/ssl/certs --proc /proc --remount-ro /proc --dev /dev',
      '--size 536870912 --tmpfs /dev/shm --remount-ro /dev --size 16777216 --tmpfs /run --dir /var --symlink /tmp /var/tmp',
      '--bind /box/tmp /tmp --bind /w/project /w/project --bind /box/home /h/person --ro-bind /h/person/.tools /h/person/.tools',
      '--ro-bind /s/proxy /run/drover-proxy --remount-ro / --chdir /w/project',
    ].join(' '),
  );
});

test('parents are mounted before what is in them', () => {
  const mounted = shown({
    readable: ['/w', '/w/project/lib/fixed', '/w/other'],
    writable: ['/w/other/cache'],
    sealed: ['/w/project/.git'],
    hidden: ['/w/project/.git/secret'],
  });
  expect(mounted).toEqual([
    'writable /box/tmp /tmp',
    'readable /w /w',
    'writable /w/project /w/project',
    'writable /box/home /h/person',
    'sealed /w/project/.git /w/project/.git',
    'writable /w/other/cache /w/other/cache',
    'readable /h/person/.tools /h/person/.tools',
    'pinned /w/project/lib /w/project/lib',
    'hidden /w/project/.git/secret /w/project/.git/secret',
    'readable /w/project/lib/fixed /w/project/lib/fixed',
  ]);
});

test('at one path hidden wins over sealed, then writable, then readable', () => {
  const path = '/w/project/a';
  const kinds = (policy: Partial<SandboxPolicy>) =>
    bubblewrapMounts({ ...POLICY, ...policy })
      .filter(({ at }) => at === path)
      .map(({ kind }) => kind);
  expect(kinds({ hidden: [path], sealed: [path], writable: [path], readable: [path] })).toEqual(['hidden']);
  expect(kinds({ sealed: [path], writable: [path], readable: [path] })).toEqual(['sealed']);
  expect(kinds({ writable: [path], readable: [path] })).toEqual(['writable']);
});

test('a toolchain inside the project is not mounted again, so it stays writable', () => {
  const system = { ...POLICY.system, toolchains: ['/w/project/.venv', '/h/person/.tools'] };
  expect(shown({ system }).filter((line) => line.startsWith('readable'))).toEqual([
    'readable /h/person/.tools /h/person/.tools',
  ]);
});

inSandbox('mounts of a running command', (system) => {
  test('a command writes to its root, HOME and /tmp, and nowhere else', async () => {
    const here = box(system);
    const script =
      'for d in . ~ /tmp / /usr /etc /opt /var /proc /dev/..; do touch $d/new 2>/dev/null && echo $d; done';
    const { output } = await runInside(here, script);
    expect(output.replaceAll(system.home, '~')).toBe('.\n~\n/tmp\n');
    await runInside(here, 'touch ../beside');
    expect([readdirSync(here.root), readdirSync(here.around).sort()]).toEqual([['new'], ['private', 'root']]);
    expect(existsSync(join(here.policy.folder, 'home', 'new'))).toBe(true);
  });

  test('a readable folder is read-only, and a writable one in it can be written', async () => {
    const place = temporary();
    mkdirSync(join(place, 'cache'));
    writeFileSync(join(place, 'file'), 'text');
    const here = box(system, { readable: [place], writable: [join(place, 'cache')] });
    const { output } = await runInside(here, `cat ${place}/file; echo x > ${place}/file; echo y > ${place}/cache/new`);
    expect(output).toMatch(/^text.*file: Read-only file system\n$/);
    expect([readFileSync(join(place, 'file'), 'utf8'), readFileSync(join(place, 'cache/new'), 'utf8')]).toEqual([
      'text',
      'y\n',
    ]);
  });

  test('hidden files are unreadable and hidden folders empty, also in a sealed folder', async () => {
    const { root } = box(system);
    mkdirSync(join(root, 'kept/secret'), { recursive: true });
    for (const name of ['kept/secret/key', 'kept/file', '.env']) writeFileSync(join(root, name), name);
    const here = box(system, {
      root,
      sealed: [join(root, 'kept')],
      hidden: [join(root, 'kept/secret'), join(root, '.env'), join(root, 'none')],
    });
    const { output } = await runInside(
      here,
      'cat kept/file; ls -A kept/secret; cat .env; echo x > kept/secret/new; echo x > .env; ls',
    );
    expect(output.replace(/^.*bash: line 1: /gm, '')).toBe(
      'kept/filecat: .env: Permission denied\nkept/secret/new: Read-only file system\n.env: Permission denied\nkept\n',
    );
    expect(readFileSync(join(root, '.env'), 'utf8')).toBe('.env');
  });

  test('a folder that holds a sealed or hidden path cannot be renamed or removed', async () => {
    const { root } = box(system);
    mkdirSync(join(root, 'a/b'), { recursive: true });
    writeFileSync(join(root, 'a/b/sealed'), 'before');
    writeFileSync(join(root, 'a/b/hidden'), 'secret');
    const here = box(system, { root, sealed: [join(root, 'a/b/sealed')], hidden: [join(root, 'a/b/hidden')] });
    const moved = await runInside(
      here,
      'mv a c; mv a/b a/d; rm -rf a; mkdir -p a/b; echo evil > a/b/sealed; echo more > a/b/new',
    );
    expect(moved.output).toMatch(/Device or resource busy/);
    const { output } = await runInside(here, 'cat a/b/sealed a/b/hidden a/b/new');
    expect(output).toBe('beforecat: a/b/hidden: Permission denied\nmore\n');
  });

  test('a missing sealed path cannot be created; its placeholder ends with the session', async () => {
    const { root } = box(system);
    const here = box(system, { root, sealed: [join(root, '.envrc'), join(root, '.husky')] });
    const { output } = await runInside(
      here,
      'echo x > .envrc; mkdir .husky/x; rmdir .envrc; mv .husky h; ln -sfn / .envrc; true',
    );
    expect(output.split('\n').filter((line) => line !== '').length).toBeGreaterThanOrEqual(5);
    unsealSandboxPaths(here.policy.folder);
    expect(readdirSync(root)).toEqual([]);
  });

  test.each([['made by this command'], ['made by another drover']])(
    'a file that replaces a removed placeholder %s is set aside',
    async (origin) => {
      const { root } = box(system);
      const path = join(root, '.envrc');
      if (origin !== 'made by this command') mkdirSync(path);
      const ran = runInside(box(system, { root, sealed: [path] }), 'touch began; sleep 0.6; echo evil > .envrc');
      await expect.poll(() => existsSync(join(root, 'began'))).toBe(true);
      rmdirSync(path);
      await ran;
      expect(readdirSync(root).map((name) => name.replace(/\d+$/, ''))).toEqual(['.envrc.replaced-', 'began']);
    },
  );

  test('a sealed link that a command replaced is restored after the command', async () => {
    const { root } = box(system);
    mkdirSync(join(root, 'hooks'));
    symlinkSync('hooks', join(root, '.husky'));
    const here = box(system, { root, sealed: sandboxProjectView(root).sealed });
    const { exitCode } = await runInside(here, 'rm .husky && mkdir .husky && echo evil > .husky/pre-commit');
    expect(exitCode).toBe(0);
    expect(readlinkSync(join(root, '.husky'))).toBe('hooks');
    expect((await runInside(here, 'echo evil > hooks/pre-commit')).output).toMatch(/Read-only file system/);
    unsealSandboxPaths(here.policy.folder);
    expect(readdirSync(root).map((name) => name.replace(/\d+$/, ''))).toEqual(['.husky', '.husky.replaced-', 'hooks']);
  });

  test('names that run later are sealed in subfolders too, where they exist', async () => {
    const { root } = box(system);
    mkdirSync(join(root, 'lib'));
    mkdirSync(join(root, 'deep'));
    writeFileSync(join(root, 'lib', '.git'), 'gitdir: ../.git/modules/lib\n');
    writeFileSync(join(root, 'deep', '.envrc'), 'as it was\n');
    const here = box(system, { root, sealed: sandboxProjectView(root).sealed });
    await runInside(here, 'rm -f lib/.git; mv lib other; mkdir -p lib/.git; echo evil > deep/.envrc; true');
    unsealSandboxPaths(here.policy.folder);
    expect(readFileSync(join(root, 'lib', '.git'), 'utf8')).toBe('gitdir: ../.git/modules/lib\n');
    expect(readFileSync(join(root, 'deep', '.envrc'), 'utf8')).toBe('as it was\n');
  });

  test('the outside target of a link in the project is not visible', async () => {
    const place = temporary();
    writeFileSync(join(place, 'file'), 'text');
    const here = box(system);
    symlinkSync(place, join(here.root, 'link'));
    expect((await runInside(here, 'cat link/file')).output).toBe('cat: link/file: No such file or directory\n');
  });

  test('files in RAM end with their command, and those of the machine are not shown', async () => {
    const here = box(system);
    const { output } = await runInside(here, 'echo kept > /dev/shm/note; cat /dev/shm/note');
    expect(output).toBe('kept\n');
    const again = await runInside(here, 'ls -A /dev/shm /run | grep -v drover-lane');
    expect(again.output).toBe('/dev/shm:\n\n/run:\n');
    expect(existsSync('/dev/shm/note')).toBe(false);
  });
});

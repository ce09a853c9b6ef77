// The package that `pnpm release:pack` makes: npm installs it into an empty prefix, and every command works there.

import { execFileSync } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ended, hasRegistry, Installed, writeFiles } from '../../support/release/installed.ts';
import { PLAN, SEARCHES, TWO_TASKS, WRITES } from '../../support/release/scripts.ts';

const BYTES_MAX = 3 * 1024 * 1024;
const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly version: string };

describe.runIf(hasRegistry())('the installed package', () => {
  let drover: Installed;
  beforeAll(() => void (drover = new Installed()));
  afterAll(() => drover.remove());

  test('the tarball is small and holds no sources and no tests', () => {
    const names = execFileSync('tar', ['tzf', drover.tarball], { encoding: 'utf8' }).trim().split('\n');
    expect(statSync(drover.tarball).size).toBeLessThanOrEqual(BYTES_MAX);
    expect(names).toEqual(
      expect.arrayContaining(
        ['README.md', 'LICENSE', 'dist/drover.cjs', 'dist/page/main.js', 'examples/no-console.yaml'].map(
          (name) => `package/${name}`,
        ),
      ),
    );
    expect(names.filter((name) => /\.ts$|\.map$|test|\/src\/|node_modules/.test(name))).toEqual([]);
  });

  test('drover --version prints the version', () => {
    expect(drover.run(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  test('drover demo lands all of its tasks', () => {
    const { code, stdout } = drover.run(['demo']);
    expect({ code, landed: /^Landed \(\d+\)$/m.exec(stdout)?.[0] }).toEqual({ code: 0, landed: 'Landed (6)' });
    // Its project is gone, and so is its run.
    expect(stdout).not.toMatch(/^Next$|drover (?:show|diff) /m);
  });

  test('drover exec finds ripgrep, logs, and measures text that is not ASCII', () => {
    const top = drover.project({ 'a.txt': 'a needle\n', 'script.yaml': SEARCHES });
    const model = ['--model', 'rehearsal/script.yaml'];
    const { code, stdout, stderr } = drover.run(['exec', 'Suche überall', ...model], top, { DROVER_LOG: 'debug' });
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('Gefunden: a.txt') as string });
    expect(stderr).toContain('"level":');
    expect(drover.run(['runs'], top)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Suche überall') as string,
    });
  });

  test('drover run delivers a branch', () => {
    const top = drover.project({ 'a.txt': 'a\n', 'script.yaml': WRITES, 'plan.yaml': PLAN });
    const { code, stdout, stderr } = drover.run(
      ['run', 'A file', '--plan', 'plan.yaml', '--yes', '--model', 'rehearsal/script.yaml'],
      top,
    );
    expect({ code, landed: stdout.includes('Landed (1)') }, stdout + stderr).toEqual({ code: 0, landed: true });
  });

  test('with a key alone, the first run of an npm project lands two tasks for merge', async () => {
    const top = drover.project({
      '.gitignore': 'node_modules/\n',
      'package.json': '{"name":"p","private":true,"scripts":{"test":"node test.js"}}\n',
      'package-lock.json': '{"name":"p","lockfileVersion":3,"packages":{"":{"name":"p"}}}\n',
      'test.js': 'require("mine");\n',
    });
    writeFiles(top, { 'node_modules/mine/index.js': '' });
    const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: top, encoding: 'utf8' }).trim();
    git('config', 'user.name', 'Ada');
    git('config', 'user.email', 'ada@example.com');
    const script = join(drover.folder, 'two-tasks.yaml');
    writeFileSync(script, TWO_TASKS);
    const { child, first } = await drover.start(['rehearse', script]);
    const base = /ANTHROPIC_BASE_URL=(\S+)/.exec(first)?.[1] ?? '';
    const ran = await drover.ran(['run', 'Add two functions', '--gate', 'npm test', '--yes'], top, {
      ANTHROPIC_API_KEY: 'k',
      ANTHROPIC_BASE_URL: base,
    });
    await ended(child);
    expect({ code: ran.code, landed: ran.stdout.includes('Landed (2)') }, ran.stdout + ran.stderr).toEqual({
      code: 0,
      landed: true,
    });
    expect(ran.stderr).toContain('each workspace gets your node_modules, read-only');
    const branch = git('for-each-ref', '--format=%(refname:short)', 'refs/heads/drover');
    expect(branch).toMatch(/^drover\/add-two-functions-[0-9a-f]{6}$/);
    expect(git('log', '-2', '--format=%an <%ae> %s', branch)).toBe(
      'Ada <ada@example.com> Subtract\nAda <ada@example.com> Add',
    );
    expect(drover.run(['diff', '--name-only'], top)).toEqual({ code: 0, stdout: 'add.js\nsub.js\n', stderr: '' });
    expect(drover.run(['merge'], top).code).toBe(0);
    expect(git('log', '-3', '--format=%s')).toBe('Subtract\nAdd\nfirst');
  });

  test('drover batch runs the example that comes with it', () => {
    const examples = join(drover.package, 'examples');
    const top = join(drover.folder, 'shop');
    execFileSync(process.execPath, [join(examples, 'no-console/make-sample.mjs'), top]);
    const model = `rehearsal/${join(examples, 'no-console/model.mjs')}`;
    const { code, stdout } = drover.run(['batch', join(examples, 'no-console.yaml'), '--model', model], top);
    expect(code, stdout).toBe(0);
  });

  test.each(['worker', 'hosts'])('drover %s looks for its queue', (command) => {
    const { code, stderr } = drover.run([command, '--queue', 'redis://127.0.0.1:1']);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('no Redis answers at') as string });
  });

  test('drover init writes a config that the installed drover reads', () => {
    const top = drover.project({ 'package.json': '{"scripts":{"test":"true"}}', 'index.js': '' });
    expect(drover.run(['init'], top).code).toBe(0);
    expect(drover.run(['batch', '.drover/batch.yaml', '--list'], top)).toMatchObject({ code: 0 });
  });

  test('drover serve hands out its page', async () => {
    const top = drover.project({ 'a.txt': 'a\n' });
    const { child, first } = await drover.start(['serve', '--port', '0', '--json'], top);
    const { url } = JSON.parse(first) as { readonly url: string };
    const paths = ['/', '/page/main.js', '/page/style/base.css', '/page/icon.svg'];
    const answers = await Promise.all(paths.map(async (path) => (await fetch(url + path)).status));
    await ended(child);
    expect(answers).toEqual(paths.map(() => 200));
  });

  test('drover rehearse serves a scripted model', async () => {
    const script = join(drover.package, 'examples/rehearsal/fix-a-typo.yaml');
    const { child, first } = await drover.start(['rehearse', script]);
    const url = /ANTHROPIC_BASE_URL=(\S+)/.exec(first)?.[1] ?? '';
    const { status } = await fetch(`${url}/v1/models`);
    await ended(child);
    expect({ first: first.startsWith('rehearsing'), answers: status < 500 }).toEqual({ first: true, answers: true });
  });
});

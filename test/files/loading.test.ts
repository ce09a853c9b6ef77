// Start-up loads the schemas and their library only when there is a file to read.

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';

const SCHEMAS =
  /\/(bin\/files\/(?!plan-text)|packages\/documents\/src\/(?!suggestion)|packages\/rehearsal\/src\/schema)/;

/** Prints the address of every module that is loaded. */
const LISTING = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  import { writeSync } from 'node:fs';
  registerHooks({ load(url, context, next) { writeSync(2, 'LOADED ' + url + '\\n'); return next(url, context); } });
`)}`;

async function loaded(args: readonly string[], config?: string): Promise<readonly string[]> {
  const home = await mkdtemp(join(tmpdir(), 'drover-loading-'));
  onTestFinished(() => rm(home, { recursive: true, force: true }));
  if (config !== undefined) {
    await mkdir(join(home, '.config/drover'), { recursive: true });
    await writeFile(join(home, '.config/drover/config.yaml'), config);
  }
  const options = { cwd: home, env: { HOME: home, PATH: process.env['PATH'] ?? '' }, maxBuffer: 64 * 1024 * 1024 };
  const all = ['--import', LISTING, resolve('bin/drover.cjs'), ...args];
  // A refused command loads modules as well.
  const { stderr } = await promisify(execFile)(process.execPath, all, options).catch(
    (error: unknown) => error as { readonly stderr: string },
  );
  return [...stderr.matchAll(/^LOADED (.*)$/gm)].map((match) => match[1] ?? '').filter((url) => SCHEMAS.test(url));
}

test.each([
  [['--version']],
  [['runs']],
  [['exec', 'hi', '--model', 'none/such']],
  [['run', 'hi', '--model', 'none/such']],
])('drover %j loads no schema without a file', async (args) => {
  expect(await loaded(args)).toEqual([]);
});

test('drover runs loads the schema of the config for a config', async () => {
  const files = (await loaded(['runs'], 'workers: 3\n')).map((url) => url.replace(/^.*\/(bin|packages)\//, '$1/'));
  expect(files).toContain('bin/files/config-file.ts');
  expect(files).not.toContain('bin/files/batch-spec.ts');
});

// The batch example on its whole sample: sixty files, a second run, and a run after three edits.

import { execFileSync } from 'node:child_process';
import { appendFile, readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { loadRehearsalScript } from '@drover/rehearsal/load';
import { startRehearsal } from '@drover/rehearsal/server';
import { drover } from '../../cli/fake-io.ts';
import { EXAMPLES, MODEL, resultsIn, sample } from '../../support/example-sample.ts';
import { readJunit } from '../../support/data/junit-schema.ts';

test('sixty files land, patches apply, and only three edited files run again', async () => {
  const { folder, shop } = await sample(60);
  const server = await startRehearsal(await loadRehearsalScript(MODEL));
  onTestFinished(() => server.close());
  const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: shop });
  const env = { DROVER_HOME: join(folder, 'home'), ANTHROPIC_API_KEY: 'k', ANTHROPIC_BASE_URL: server.url };
  const argv = ['batch', join(EXAMPLES, 'no-console.yaml'), '--model', 'anthropic/scripted', '--view', 'silent'];
  const out = join(shop, '.drover', 'out');
  const run = async () => {
    const before = server.requests.length;
    const { code, stderr } = await drover(argv, { cwd: shop, env });
    const rows = await resultsIn(out);
    const fresh = rows.filter(({ cached }) => !cached).map(({ group }) => group);
    return {
      code,
      stderr,
      landed: rows.filter(({ status }) => status === 'landed').length,
      fresh,
      asked: server.requests.length - before,
    };
  };

  const first = await run();
  expect([first.code, first.stderr, first.landed, first.fresh.length, first.asked]).toEqual([0, '', 60, 60, 180]);
  expect(readJunit(await readFile(join(out, 'junit.xml'), 'utf8')).attributes).toMatchObject({
    tests: '60',
    failures: '0',
  });
  for (const name of await readdir(join(out, 'patches')))
    if (name.endsWith('.patch')) git('apply', '--check', join(out, 'patches', name));
  git('apply', '--check', join(out, 'combined.patch'));
  expect(await readFile(join(out, 'report.md'), 'utf8')).toContain('60 of 60 tasks are done');

  const second = await run();
  expect([second.code, second.landed, second.fresh, second.asked]).toEqual([0, 60, [], 0]);

  const touched = ['src/cart/find.js', 'src/mail/send.js', 'src/users/sort.js'];
  for (const path of touched) await appendFile(join(shop, path), '// touched\n');
  git('-c', 'user.name=A', '-c', 'user.email=a@example.com', 'commit', '-q', '-a', '-m', 'touch three');
  const third = await run();
  expect([third.code, third.landed, third.fresh, third.asked]).toEqual([0, 60, touched, 9]);
  git('apply', join(out, 'combined.patch'));
  execFileSync(process.execPath, ['--test'], { cwd: shop });
});

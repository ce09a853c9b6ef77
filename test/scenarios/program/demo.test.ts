// The demo runs with real tools and leaves nothing behind.

import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { drover } from '../../cli/fake-io.ts';

test('the demo plans, works, merges and tests for real, and every task lands', { timeout: 90_000 }, async () => {
  const { code, stdout, stderr } = await drover(['demo', '--keep'], {
    env: { ANTHROPIC_BASE_URL: 'nonsense' },
  });
  const folder = /The project is in (\S+)/.exec(stdout)?.[1] ?? '';
  onTestFinished(() => rm(dirname(folder), { recursive: true, force: true }));
  expect(existsSync(join(folder, 'src', 'price.js'))).toBe(true);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const shown = await drover(['runs'], { env: { DROVER_HOME: join(dirname(folder), '.drover') } });
  expect(shown.stdout).toContain('rehearsal/demo');
  const seen = stdout.slice(stdout.indexOf('What you saw'), stdout.indexOf('Only the models'));
  expect(`\n${seen.replace(/\d+ %/, '<n> %').replace(/^ {2}[0-9a-f]{7,} /gm, '  <id> ')}`).toMatchInlineSnapshot(`
      "
      What you saw
        · discount changed the same lines as a task before it: it was done once more, on top of that.
        · receipt passed the tests alone and failed them with the others: it was found and left out, the rest landed, and a second plan made it good.
        · The provider refused one request of discount with 429: all workers slowed down, not just that one.
        · Workers begin with the coordinator’s conversation: <n> % of all they sent was read from the provider’s cache.

      One commit per task, the newest first
        <id> Print receipts, with formatMoney
        <id> Give discounts
        <id> Document what there is
        <id> Know what is in stock
        <id> Call it formatMoney
        <id> Count in whole cents

      "
    `);
});

test('the demo without git says that git is missing', async () => {
  const { code, stdout, stderr } = await drover(['demo'], { env: { PATH: '/nowhere' } });
  expect({ code, stdout, stderr }).toEqual({
    code: 2,
    stdout: '',
    stderr: 'drover: the demo needs git, and there is none on the PATH; install it and try again\n',
  });
});

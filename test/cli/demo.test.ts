// The demo: the real tools do the real work, and it leaves nothing behind.

import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { drover } from './fake-io.ts';

test('the demo ends with a mended library, passing tests, and what to type next', async () => {
  const { code, stdout, stderr } = await drover(['demo'], { env: { ANTHROPIC_BASE_URL: 'nonsense' } });
  const folder = /drover rehearsal\/demo in (\S+)/.exec(stdout)?.[1] ?? '';
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(existsSync(dirname(folder))).toBe(false);
  const steady = stdout
    .replace(folder, '<folder>')
    .replace(/\d+(\.\d+)? m?s\b/g, '<time>')
    .replace(/[\d,]+ tokens in.*out/, '<tokens>')
    .replace(/, \d+ lines/, ', <n> lines')
    .replace(/(<time>  )\d+ lines$/gm, '$1<n> lines');
  expect(`\n${steady}`).toMatchInlineSnapshot();
});

test('--keep leaves the sample project to look at', async () => {
  const { code, stdout } = await drover(['demo', '--keep']);
  const folder = /The project is in (\S+)/.exec(stdout)?.[1] ?? '';
  onTestFinished(() => rm(dirname(folder), { recursive: true, force: true }));
  expect([code, existsSync(`${folder}/src/slug.js`)]).toEqual([0, true]);
});

test('without git the demo says so', async () => {
  const { code, stdout, stderr } = await drover(['demo'], { env: { PATH: '/nowhere' } });
  expect({ code, stdout, stderr }).toEqual({
    code: 2,
    stdout: '',
    stderr: 'drover: the demo needs git, and there is none on the PATH; install it and try again\n',
  });
});

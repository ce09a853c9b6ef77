// drover serve --open: a program opens the page, which lets the user in.

import { chmod, mkdtemp, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { desk as folderWithProject, servedHere } from '../cli/serve/served.ts';
import { temporaryFolder } from '../support/agent.ts';
import { inBrowser } from '../support/serve/chromium.ts';
import { pageDesk } from '../support/serve/page-desk.ts';

/** A folder with a program of this name, which keeps its arguments in a file. */
async function opener(
  name: string,
  last = '',
): Promise<{ readonly folder: string; readonly told: () => Promise<string> }> {
  const folder = await mkdtemp(join(tmpdir(), 'drover-opener-'));
  const program = join(folder, name);
  await writeFile(
    program,
    `#!/bin/sh\nprintf '%s\\n' "$@" > ${folder}/draft\n/bin/mv ${folder}/draft ${folder}/told\n${last}\n`,
  );
  await chmod(program, 0o755);
  const told = async () => {
    await expect.poll(() => readdir(folder), { timeout: 20_000 }).toContain('told');
    return (await readFile(join(folder, 'told'), 'utf8')).trim();
  };
  return { folder, told };
}

inBrowser('drover serve --open', (open) => {
  test('the page opens and lets the user in, through a file that only the user can read', async () => {
    const { folder, told } = await opener('xdg-open');
    const desk = await pageDesk({}, { argv: ['--open'], env: { PATH: folder } });
    const address = await told();
    expect(address).toMatch(/^file:\/\/.*\.html$/);
    expect((await stat(fileURLToPath(address))).mode & 0o777).toBe(0o600);
    const { page } = await open(address);
    await page.getByText('Nothing here yet.').waitFor();
    expect(page.url()).toBe(`${desk.url}/#/`);
    await desk.stop();
    await expect(stat(fileURLToPath(address))).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

test('BROWSER chooses the program and its arguments, and the next one if it is missing', async () => {
  const { folder, told } = await opener('mine');
  const env = { PATH: folder, BROWSER: 'nothing-there:mine --new %s --last' };
  await servedHere(await folderWithProject(), ['--open'], env);
  expect((await told()).split('\n')).toEqual(['--new', expect.stringMatching(/^file:/), '--last']);
});

test.each([
  ['without a program', {}, 'drover: no browser was opened, because there is no xdg-open or open; open the address'],
  [
    'with a program that fails',
    { last: 'exit 3' },
    'drover: xdg-open opened no browser (it ended with 3); open the address',
  ],
])('%s a sentence says so, and the server serves', async (_, given, sentence) => {
  const folder = 'last' in given ? (await opener('xdg-open', given.last)).folder : await temporaryFolder();
  const { client, stderr } = await servedHere(await folderWithProject(), ['--open'], { PATH: folder });
  await expect.poll(stderr, { timeout: 20_000 }).toContain(sentence);
  expect(await client.runs()).toEqual({ runs: [] });
});

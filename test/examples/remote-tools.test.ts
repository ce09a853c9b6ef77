// The examples of a session over HTTP, run unchanged against `drover serve` on a scripted model.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { desk, servedHere } from '../cli/serve/served.ts';
import { inBrowser } from '../support/serve/chromium.ts';

/** The example's output. The server's token is in DROVER_HOME, and there is none in the home folder. */
async function ran(home: string, ...args: string[]): Promise<{ readonly stdout: string; readonly stderr: string }> {
  const env = { PATH: process.env['PATH'], HOME: join(home, 'nowhere'), DROVER_HOME: join(home, '.drover') };
  return promisify(execFile)(process.execPath, args, { env });
}

async function scripted(script: string): Promise<string> {
  const cwd = await desk();
  await writeFile(join(cwd, 'script.yaml'), script);
  return cwd;
}

test('examples/over-http/two-sides.ts delivers its results, and the turn continues', async () => {
  const cwd = await scripted(`
answers:
  - calls: [{name: price_of, args: {article: apple}}, {name: list, args: {}}, {name: price_of, args: {article: pear}}]
  - text: Half a euro each.
`);
  const { where } = await servedHere(cwd);
  const { stdout, stderr } = await ran(cwd, 'examples/over-http/two-sides.ts', where.url);
  expect(stdout.split('\n').filter((line) => !/^(message|toolcall)_/.test(line))).toEqual([
    'usage',
    'tool_execution_start',
    'tool_execution_end',
    'awaiting_tool_execution',
    'session_end',
    'Half a euro each.',
    expect.stringMatching(/^done, \d+ tokens$/),
    '',
  ]);
  expect(stderr).toBe('');
});

test('examples/remote-tools/in-node.ts reads its own machine for a remote agent', async () => {
  const cwd = await scripted(`
answers:
  - calls: [{name: memory}, {name: load}]
  - when: {text: MB are free}
    text: All is well.
`);
  const { where } = await servedHere(cwd);
  const { stdout, stderr } = await ran(cwd, 'examples/remote-tools/in-node.ts', 'How is it?', where.url);
  expect([stdout, stderr]).toEqual(['looking at memory\nlooking at load\nAll is well.\n', '']);
});

inBrowser('the example of a page with tools', (open) => {
  test('the visitor is asked, the field is painted, and model text stays text', async () => {
    const cwd = await scripted(`
answers:
  - calls: [{name: ask_visitor, args: {question: "Which <b>colour</b>?"}}]
  - when: {text: is no colour}
    text: "It is <img src=x onerror=alert(1)> purple."
  - when: {text: rebeccapurple}
    calls: [{name: show_colour, args: {colour: rebeccapurple}}, {name: show_colour, args: {colour: none of them}}]
`);
    const { where, token } = await servedHere(cwd);
    const server = spawn(process.execPath, ['examples/remote-tools/serve-page.ts', where.url], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    onTestFinished(() => void server.kill());
    const [url] = (await once(server.stdout, 'data')) as [Buffer];
    const { page, complaints } = await open(url.toString().trim());
    await page.getByLabel('Token').fill(token);
    await page.getByRole('button', { name: 'Say it' }).click();
    await page.getByLabel('Which <b>colour</b>?').fill('rebeccapurple');
    await page.getByRole('button', { name: 'Answer' }).click();
    await page.locator('#answer[data-outcome=done]').waitFor();

    expect(await page.locator('#answer').textContent()).toBe('It is <img src=x onerror=alert(1)> purple.');
    const painted = await page.locator('#swatch').getAttribute('style');
    expect([painted, await page.locator('img').count(), complaints]).toEqual([
      'background-color: rebeccapurple;',
      0,
      [],
    ]);
  });

  test('without the token the page gets nothing, and says so', async () => {
    const { where } = await servedHere(await desk());
    const server = spawn(process.execPath, ['examples/remote-tools/serve-page.ts', where.url], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    onTestFinished(() => void server.kill());
    const [url] = (await once(server.stdout, 'data')) as [Buffer];
    const { page } = await open(url.toString().trim());
    await page.getByLabel('Token').fill('wrong');
    await page.getByRole('button', { name: 'Say it' }).click();
    await page.getByText('the token is missing or wrong').waitFor();
  });
});

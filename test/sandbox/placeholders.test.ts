// Placeholders in the user's folder: removed after a session, or by the next one if a session was killed.

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { recordPlaceholders, removeLeftPlaceholders } from '../../bin/sandbox/placeholders.ts';
import { LAUNCHER } from '../cli/program.ts';
import { inSandbox, temporary } from '../support/sandbox/box.ts';
import { until } from '../support/until.ts';

/** A process id that no process has. */
const GONE = 2 ** 30;

function folderWith(command: string): string {
  const folder = temporary();
  for (const name of ['home', 'project']) mkdirSync(join(folder, name));
  const answer = { calls: [{ name: 'shell', args: { command } }] };
  writeFileSync(join(folder, 'script.yaml'), JSON.stringify({ answers: [answer, { text: 'done' }] }));
  return folder;
}

function exec(folder: string) {
  const env = { PATH: process.env['PATH'], HOME: join(folder, 'home') };
  const args = [LAUNCHER, 'exec', 'go', '--model', `rehearsal/${join(folder, 'script.yaml')}`];
  const child = spawn(process.execPath, args, { cwd: join(folder, 'project'), env, stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  return { child, ended: new Promise<number | null>((resolve) => child.once('exit', resolve)) };
}

inSandbox('placeholders of a session', () => {
  test('the next session removes a killed one’s leftovers, and no files of the user', async () => {
    const folder = folderWith('touch begun; sleep 60');
    const project = join(folder, 'project');
    const first = exec(folder);
    await until(() => existsSync(join(project, 'begun')));
    first.child.kill('SIGKILL');
    await first.ended;
    const left = readdirSync(project);
    expect(left).toContain('.envrc');
    writeFileSync(join(project, '.vscode', 'settings.json'), '{}');

    writeFileSync(join(folder, 'script.yaml'), 'answers: [{text: done}]');
    expect(await exec(folder).ended).toBe(0);
    expect(readdirSync(project)).toEqual(['.vscode', 'begun']);
  });
});

test('a record of a live process is left alone', () => {
  const state = temporary();
  const path = join(state, 'made');
  const end = recordPlaceholders(state, [path, state]);
  mkdirSync(path);
  removeLeftPlaceholders(state);
  expect(existsSync(path)).toBe(true);
  end();
  expect(readdirSync(state, { recursive: true })).toEqual(['sandbox', 'sandbox/placeholders']);
});

test('the last of two sessions removes its files in a placeholder of the first', () => {
  const state = temporary();
  const [outer, inner] = [join(state, '.vscode'), join(state, '.vscode', 'tasks.json')];
  const first = recordPlaceholders(state, [outer]);
  mkdirSync(outer);
  const second = recordPlaceholders(state, [inner]);
  mkdirSync(inner);
  first();
  expect(existsSync(inner)).toBe(true);
  second();
  expect(readdirSync(state, { recursive: true })).toEqual(['sandbox', 'sandbox/placeholders']);
});

test('nothing is removed through a link, and an old record is removed', () => {
  const state = temporary();
  const folder = join(state, 'sandbox', 'placeholders');
  mkdirSync(folder, { recursive: true });
  for (const name of ['elsewhere/empty', 'here/full/file', 'here/empty'])
    mkdirSync(join(state, name), { recursive: true });
  symlinkSync(join(state, 'elsewhere'), join(state, 'link'));
  const paths = ['link/empty', 'here/full', 'here/empty', 'nowhere'].map((name) => `${join(state, name)}\0`);
  writeFileSync(join(folder, `${GONE}-0`), paths.join(''));
  utimesSync(join(folder, `${GONE}-0`), 1, 1);
  removeLeftPlaceholders(state);
  expect(readdirSync(state, { recursive: true, encoding: 'utf8' }).toSorted()).toEqual([
    'elsewhere',
    'elsewhere/empty',
    'here',
    'here/full',
    'here/full/file',
    'link',
    'link/empty',
    'sandbox',
    'sandbox/placeholders',
  ]);
});

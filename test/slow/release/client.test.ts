// The tarball of @drover/client: a program outside this repository imports it, compiles and runs.

import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../support/workspace.ts';

const PROGRAM = `import { DroverClient } from '@drover/client/client';
const client = new DroverClient({ baseUrl: 'http://127.0.0.1:1', token: 'none' });
export const start = async (): Promise<string> => (await client.startRun({ goal: 'x' })).id;
// @ts-expect-error a goal is text
export const wrong = () => client.startRun({ goal: 1 });
console.log(typeof client.runs);
`;

test('a program outside the repository compiles and runs with the packed client', async () => {
  const folder = await temporaryFolder();
  execFileSync('node', ['scripts/release-client.ts', folder], { stdio: 'pipe' });
  const [tarball = ''] = readdirSync(folder).filter((name) => name.endsWith('.tgz'));
  const home = join(folder, 'node_modules', '@drover', 'client');
  mkdirSync(home, { recursive: true });
  execFileSync('tar', ['xzf', join(folder, tarball), '-C', home, '--strip-components=1']);
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(join(folder, 'program.ts'), PROGRAM);
  const flags = ['--strict', '--module', 'nodenext', '--target', 'esnext', '--lib', 'esnext,dom', 'program.ts'];
  execFileSync(resolve('node_modules/.bin/tsc'), flags, { cwd: folder, stdio: 'pipe' });
  expect(execFileSync('node', ['program.js'], { cwd: folder, encoding: 'utf8' })).toBe('function\n');
  expect(readdirSync(home).toSorted()).toEqual(['LICENSE', 'dist', 'package.json']);
});

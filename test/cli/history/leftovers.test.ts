// Temporary files of a killed drover, and how the next start removes them.

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { temporaryFileName } from '@drover/core/tools/files/leftovers';
import { expect, test } from 'vitest';
import { Desk } from '../desk.ts';

/** The id of a process that has ended. */
function deadPid(): number {
  return spawnSync('true').pid;
}

const LONG_AGO = new Date(Date.now() - 2 * 3_600_000);
const OF_AN_OLDER_VERSION = '.a.txt.0123456789ab.drover-new';

test('the next start removes a killed process’s leftovers, and no other files', async () => {
  const desk = await Desk.with('answers: [{text: Done.}]');
  const dead = temporaryFileName('a.txt', deadPid());
  const files = {
    gone: [dead, `src/deep/${dead}`, `old/${OF_AN_OLDER_VERSION}`],
    kept: [
      temporaryFileName('b.txt', process.pid), // its writer is alive
      OF_AN_OLDER_VERSION, // recent, by an unknown writer
      '.env.drover-new',
      'a.txt',
      `.git/${dead}`,
      `node_modules/${dead}`,
    ],
  };
  for (const path of [...files.gone, ...files.kept]) {
    await mkdir(dirname(join(desk.cwd, path)), { recursive: true });
    await writeFile(join(desk.cwd, path), 'half a fi');
  }
  await utimes(join(desk.cwd, 'old', OF_AN_OLDER_VERSION), LONG_AGO, LONG_AGO);
  const { code } = await desk.exec('work', 'go');
  expect(code).toBe(0);
  const left = (paths: readonly string[]) => paths.filter((path) => existsSync(join(desk.cwd, path)));
  expect([left(files.gone), left(files.kept)]).toEqual([[], files.kept]);
});

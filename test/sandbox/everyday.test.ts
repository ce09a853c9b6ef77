// A sample of everyday commands behaves the same inside the sandbox. The slow lane runs all of them.

import { expect, test } from 'vitest';
import { box, inSandbox, runInside } from '../support/sandbox/box.ts';
import { DIFFERENT, EVERYDAY } from '../support/sandbox/everyday/all.ts';
import { compareAll } from '../support/sandbox/everyday/compare.ts';
import { makeProject } from '../support/sandbox/everyday/project.ts';
import { sideBySide } from '../support/sandbox/parallel.ts';

const EVERY = 7;
// Compilers take seconds.
const SLOW = ['cargo', 'javac'];

test('there are at least 300 everyday commands, each once', () => {
  expect(new Set(EVERYDAY.map(({ command }) => command)).size).toBe(EVERYDAY.length);
  expect(EVERYDAY.length).toBeGreaterThanOrEqual(300);
});

inSandbox('everyday commands', (system) => {
  test('a sample of everyday commands gives the same output and exit code inside', async () => {
    const sample = EVERYDAY.filter(({ needs }, at) => at % EVERY === 0 && !SLOW.includes(needs));
    expect(await compareAll(system, sample)).toEqual([]);
  });

  test('commands that cannot behave as outside behave as listed', async () => {
    const here = box(system);
    makeProject(here.root);
    const ran = await sideBySide(DIFFERENT, async ({ command, why, inside }) => {
      const { output } = await runInside(here, command);
      return { command, why, output, fits: inside.test(output) };
    });
    expect(ran.filter(({ fits }) => !fits)).toEqual([]);
  });
});

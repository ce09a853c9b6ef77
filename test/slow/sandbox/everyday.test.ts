// All everyday commands, inside and outside the sandbox: the same output and exit code.

import { expect, test } from 'vitest';
import { inSandbox } from '../../support/sandbox/box.ts';
import { EVERYDAY } from '../../support/sandbox/everyday/all.ts';
import { compareAll } from '../../support/sandbox/everyday/compare.ts';

const TEST_MS_MAX = 1_200_000;

inSandbox('all everyday commands', (system) => {
  test('every everyday command gives the same output and exit code inside', { timeout: TEST_MS_MAX }, async () => {
    expect(await compareAll(system, EVERYDAY)).toEqual([]);
  });
});

// More command lines than the fast lane types: what is read without yargs is what yargs reads.

import { expect, test } from 'vitest';
import { declared, plainOnes, withTwo } from '../../support/data/command-lines.ts';

test.each([
  ['one word', declared],
  ['two words', withTwo],
])(
  'whatever is typed where %s may be: what is plain is what yargs reads, and the rest is left to yargs',
  async (_, command) => {
    expect(await plainOnes(command, 10_000)).toBeGreaterThan(1_000);
  },
);

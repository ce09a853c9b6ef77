// The fast reader of command lines agrees with yargs: more lines than the fast lane.

import { expect, test } from 'vitest';
import { declared, plainOnes, withTwo } from '../../support/data/command-lines.ts';

test.each([
  ['one word', declared],
  ['two words', withTwo],
])('with %s possible, plain command lines are read as yargs reads them', async (_, command) => {
  expect(await plainOnes(command, 10_000)).toBeGreaterThan(1_000);
});

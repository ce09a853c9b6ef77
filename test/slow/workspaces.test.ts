// Workspaces, killed before and after every git that drover starts for them.

import { expect, test } from 'vitest';
import { cut } from '../coordinator/slots/workspace-cut.ts';

const CALLS_MAX = 40;

test('drover killed around any git process leaves nothing the next run can’t use', async () => {
  const works = new Set<string>();
  const lanes = (['before', 'after'] as const).map(async (when) => {
    for (let at = 1; at <= CALLS_MAX; at++) {
      const { isThrough, work } = await cut(at, when);
      works.add(work);
      if (isThrough) return at - 1;
    }
    return CALLS_MAX;
  });
  const [first, second] = await Promise.all(lanes);
  expect(first).toBe(second);
  expect(first).toBeGreaterThan(5);
  // The result is the same at every kill point.
  expect(works.size).toBe(1);
}, 300_000);

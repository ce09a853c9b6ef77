// 500 random sessions with large and small results: none ends by its length.

import { expect, test } from 'vitest';
import { liveThrough } from '../support/data/long-histories.ts';

const SESSIONS = 500;

test('none of 500 random sessions ends by its length, and none is refused', async () => {
  const failures: string[] = [];
  let summaries = 0;
  for (let seed = 1; seed <= SESSIONS; seed++) {
    const { failures: more, lived } = await liveThrough(seed);
    failures.push(...more);
    summaries += lived.server.requests.filter(({ rawBody }) => rawBody.includes('condense the history')).length;
    await lived.server.close();
  }
  expect(failures).toEqual([]);
  expect(summaries).toBeGreaterThan(SESSIONS);
});

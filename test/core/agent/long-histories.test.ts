// Histories of few large results: the cut is made by tokens, so no session ends by length while a summary would fit.

import { expect, test } from 'vitest';
import { agentOn } from '../../support/agent.ts';
import { liveThrough, SUMMARY } from '../../support/data/long-histories.ts';
import { story } from '../../support/story.ts';

const SESSIONS = 5; // per group
const SEQ = { calls: Array.from({ length: 12 }, () => ({ name: 'shell', args: { command: 'seq 1 6100' } })) };

test('three steps of twelve large results fit a window of 200,000 tokens', async () => {
  const { run, server } = await agentOn({
    answers: [SUMMARY, SEQ, SEQ, SEQ, { text: 'Done.' }, { text: 'Again.' }],
    contextTokens: 200_000,
  });
  const first = await run('count');
  const second = await run('and again');
  expect([first.result.outcome, second.result.outcome]).toEqual([{ status: 'done' }, { status: 'done' }]);
  expect(story(first.events)).toContain('has shortened it');
  expect(server.rejections).toBe(0);
});

const GROUPS = Array.from({ length: 8 }, (_, at) => at * SESSIONS);

test.each(GROUPS)('no random history ends a session by its length (from seed %i)', async (from) => {
  const failures: string[] = [];
  let summaries = 0;
  for (let seed = from + 1; seed <= from + SESSIONS; seed++) {
    const { failures: more, lived } = await liveThrough(seed);
    failures.push(...more);
    summaries += lived.server.requests.filter(({ rawBody }) => rawBody.includes('condense the history')).length;
  }
  expect(failures).toEqual([]);
  expect(summaries).toBeGreaterThan(0);
});

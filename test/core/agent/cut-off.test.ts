// Answers that are cut off by the user, by a limit, or by a final error.

import type { Shown } from '@drover/core/bus';
import { openSessionJournal } from '@drover/core/journal/session-journal';
import { expect, onTestFinished, test } from 'vitest';
import { agentOn, APIS, quickRetry, temporaryFolder, type Rehearsed, type Settings } from '../../support/agent.ts';
import { story } from '../../support/story.ts';

const SLOW = { text: 'word '.repeat(2_000), tokensPerSecond: 50 };
const HOOKS = { onTrouble: () => undefined, onRecovery: () => undefined, diagnose: () => undefined };

/** Aborts at the second piece of text; resolves to all events. */
async function interrupt({ session }: Rehearsed, text: string): Promise<readonly Shown[]> {
  const stop = new AbortController();
  const events: Shown[] = [];
  let heard = 0;
  const execution = session.execute({ content: text }, stop.signal);
  for await (const event of execution) {
    events.push(event);
    if (event.type === 'text_delta' && (heard += 1) === 2) stop.abort();
  }
  await execution.result();
  return events;
}

const heardIn = (events: readonly Shown[]): string =>
  events.map((event) => (event.type === 'text_delta' ? event.delta : '')).join('');

test.each(APIS)('%s: an interrupted answer is kept, and the model is told', async (api) => {
  const rehearsed = await agentOn({ answers: [SLOW, { text: 'Again.' }] }, { api });
  const events = await interrupt(rehearsed, 'go');
  const partial = heardIn(events);
  expect(partial).toMatch(/^word /);
  expect(rehearsed.session.conversation.messages[1]).toMatchObject({
    role: 'assistant',
    stop: 'aborted',
    content: [{ type: 'text', text: partial }],
  });
  expect(events.find(({ type }) => type === 'text_end')).toMatchObject({ text: partial });
  expect(story(events)).not.toContainEqual(expect.stringContaining('discards'));
  expect(story(events).slice(-2)).toEqual(['cancelled', 'session ends: cancelled']);

  expect((await rehearsed.run('and now')).result.outcome).toEqual({ status: 'done' });
  const body = rehearsed.server.requests.at(-1)?.rawBody ?? '';
  expect(body).toContain(partial.trim());
  expect(body).toContain('[Your answer above was interrupted before it was complete.');
  expect(rehearsed.server.rejections).toBe(0);
});

test.each(APIS)('%s: an answer that an error ends is kept, and resume continues from it', async (api) => {
  const { run, session, server } = await agentOn(
    {
      answers: [{ text: 'half of it '.repeat(40) }, { text: 'The rest.' }],
      faults: [{ at: 1, fault: 'cut', after: 20 }],
    },
    { api, retry: { ...quickRetry, attemptsMax: 1 } },
  );
  const { events, result } = await run('go');
  expect(result.outcome).toMatchObject({ status: 'error' });
  expect(session.conversation.messages[1]).toMatchObject({
    stop: 'error',
    content: [{ type: 'text', text: heardIn(events) }],
  });
  expect((await run({ resume: true })).result.outcome).toEqual({ status: 'done' });
  expect(server.requests[1]?.rawBody).toContain('was cut off by an error before it was complete.');
  expect(server.requests[1]?.rawBody).toContain('Go on.');
  expect(server.rejections).toBe(0);
});

test('an attempt with a retry is still retracted', async () => {
  const { run, session } = await agentOn({
    answers: [{ text: 'half of it '.repeat(40) }, { text: 'Whole.' }],
    faults: [{ at: 1, fault: 'cut', after: 20 }],
  });
  const { events } = await run('go');
  expect(events.filter(({ type }) => type === 'attempt_discarded')).toHaveLength(1);
  expect(session.conversation.messages).toHaveLength(2);
});

test('thinking and calls of a cut-off answer are neither sent nor run', async () => {
  const call = { name: 'shell', args: { command: 'touch made' } };
  const parts = [{ thinking: 'hm' }, { text: 'I will. '.repeat(10) }, { call }, { text: 'word '.repeat(2_000) }];
  const { run, server } = await agentOn(
    { answers: [{ parts }, { text: 'Fine.' }], faults: [{ at: 1, fault: 'cut', after: 40 }] },
    { retry: { ...quickRetry, attemptsMax: 1 } },
  );
  const { events } = await run('go');
  expect(events.filter(({ type }) => type === 'tool_execution_start')).toEqual([]);
  await run('again');
  const body = server.requests[1]?.rawBody ?? '';
  expect([body.includes('I will.'), body.includes('"thinking":"hm"'), body.includes('touch made')]).toEqual([
    true,
    false,
    false,
  ]);
  expect(server.rejections).toBe(0);
});

test('a resumed session holds the answer that was cut off', async () => {
  const home = await temporaryFolder();
  const open = async (settings: Settings = {}) => {
    const { store, past, close } = await openSessionJournal(home, 's1', HOOKS);
    onTestFinished(close);
    const rehearsed = await agentOn(
      { answers: [SLOW, { text: 'Again.' }] },
      { ...settings, id: 's1', store, ...(past && { past }) },
    );
    return { ...rehearsed, past, close };
  };
  const first = await open();
  await interrupt(first, 'go');
  await first.close();
  const second = await open();
  expect(second.session.conversation.messages).toHaveLength(2);
  expect(second.session.conversation.messages).toEqual(first.session.conversation.messages);
  expect([second.past?.answers, second.past?.ending]).toEqual([0, 'cancelled']);
});

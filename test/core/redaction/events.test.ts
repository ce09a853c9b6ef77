// Secrets in events: whole, in pieces, and where they must stay.

import type { Event } from '@drover/protocol/events';
import { EventRedaction } from '@drover/core/redaction/event-redaction';
import { Redactor } from '@drover/core/redaction/redactor';
import { expect, test } from 'vitest';
import { agentOn } from '../../support/agent.ts';
import { proves } from '../../support/proves.ts';

const NO_USAGE = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const SECRET = 'correct-horse-battery-staple-42';
const passing = () => {
  const redaction = new EventRedaction(new Redactor([SECRET]));
  return (...events: Event[]) => events.flatMap((event) => redaction.pass(event, { turn: 1, step: 1 }));
};

test('text in pieces is held back only if it may be a secret, and is whole at the end', () => {
  const pass = passing();
  const deltas = ['The key is ', SECRET.slice(0, 9), SECRET.slice(9), ' indeed'];
  const shown = pass(
    { type: 'text_start', part: 0 },
    ...deltas.map((delta): Event => ({ type: 'text_delta', part: 0, delta })),
    { type: 'text_end', part: 0, text: deltas.join('') },
  );
  const text = shown.map((event) => ('delta' in event ? event.delta : '')).join('');
  expect(text).not.toContain(SECRET);
  expect(text).toMatch(/^The key is \[redacted:[^\]]+\] indeed$/);
  expect(shown.at(-1)).toEqual({ type: 'text_end', part: 0, text });
  expect(shown[1]).toEqual({ type: 'text_delta', part: 0, delta: 'The key is ' });
});

test('two concurrent blocks do not mix', () => {
  const pass = passing();
  const shown = pass(
    { type: 'text_delta', part: 0, delta: SECRET.slice(0, 9) },
    { type: 'text_delta', part: 1, delta: 'other' },
    { type: 'text_end', part: 1, text: 'other' },
    { type: 'text_end', part: 0, text: SECRET.slice(0, 9) },
  );
  expect(shown.map((event) => ('delta' in event ? event.delta : '|')).join('')).toBe(`other|${SECRET.slice(0, 9)}|`);
});

test('text that a discarded attempt held back is never shown', () => {
  const pass = passing();
  pass({ type: 'text_delta', part: 0, delta: SECRET.slice(0, 9) }, { type: 'attempt_discarded', reason: 'cut' });
  expect(
    pass({ type: 'text_delta', part: 0, delta: 'fresh ' }, { type: 'text_end', part: 0, text: 'fresh ' }),
  ).toHaveLength(2);
});

test('an answer cut off inside a secret does not show any of the secret', () => {
  const text = `It is ${SECRET.slice(0, 9)}`;
  const message = { role: 'assistant', content: [{ type: 'text', text }], stop: 'aborted', usage: NO_USAGE } as const;
  const shown = passing()(
    { type: 'text_delta', part: 0, delta: text },
    { type: 'text_end', part: 0, text, cutOff: true },
    { type: 'message_end', message },
  );
  expect(shown).toEqual([
    { type: 'text_delta', part: 0, delta: 'It is ' },
    { type: 'text_end', part: 0, text: 'It is ', cutOff: true },
    { type: 'message_end', message: { ...message, content: [{ type: 'text', text: 'It is ' }] } },
  ]);
});

test('content sealed by a provider is left unchanged', () => {
  const message = {
    role: 'assistant',
    content: [{ type: 'thinking', text: SECRET }],
    stop: 'stop',
    usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    native: { provider: 'p', model: 'm', items: [{ part: 0, payload: { signature: SECRET } }] },
  } as const;
  const [shown] = passing()({ type: 'message_end', message });
  expect(shown).toMatchObject({ message: { native: message.native } });
  expect(
    JSON.stringify({
      ...shown,
      message: { ...message, native: undefined, content: (shown as { message: { content: object } }).message.content },
    }),
  ).not.toContain(SECRET);
});

proves('secrets.hidden', 'a secret repeated by model and tools is in no event, and the model sees it', async () => {
  const redaction = new EventRedaction(new Redactor([SECRET]));
  const { run, server } = await agentOn(
    {
      answers: [
        { text: `It is ${SECRET}.`, calls: [{ name: 'shell', args: { command: `echo ${SECRET}` } }] },
        { text: `Again ${SECRET}` },
      ],
      chunkChars: 3,
    },
    { pass: (event, place) => redaction.pass(event, place) },
  );
  const { events } = await run(`use ${SECRET}`);
  expect(events.length).toBeGreaterThan(10);
  expect(JSON.stringify(events)).not.toContain(SECRET);
  const deltas = events.flatMap((event) => (event.type === 'text_delta' ? [event.delta] : [])).join('');
  expect(deltas).not.toContain(SECRET.slice(5));
  expect(server.requests[1]?.rawBody.split(SECRET).length).toBeGreaterThan(3);
});

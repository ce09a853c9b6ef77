// The views of a session, for users and for programs, fed with recorded events.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import type { Decision, Event, Recorded } from '@drover/protocol/events';
import type { Json } from '@drover/protocol/json';
import type { Usage } from '@drover/protocol/messages';
import type { Output } from '../../../bin/io.ts';
import { jsonView } from '../../../bin/views/json.ts';
import { linesView } from '../../../bin/views/lines.ts';
import type { View } from '../../../bin/views/view.ts';

const USAGE: Usage = { input: 1_200, output: 345, cacheRead: 9_000, cacheWrite: 0 };

/** Events stamped as by the bus, 100 ms apart. */
function recorded(events: readonly Event[]): readonly Recorded[] {
  return events.map((event, at) => ({
    v: 1,
    seq: at + 1,
    at: new Date(1_800_000_000_000 + at * 100).toISOString(),
    session: 'ses_1',
    ...event,
  }));
}

function label(callIndex: number, summary: string) {
  const name = summary.split(':')[0] ?? '';
  return { callId: `call_${callIndex}`, toolUseId: `t${callIndex}`, callIndex, index: callIndex, name, summary };
}

type CallEnd = Extract<Event, { readonly type: 'tool_execution_end' }>;

const says = (...deltas: readonly string[]): readonly Event[] => [
  { type: 'message_start', role: 'assistant' },
  { type: 'text_start', part: 0 },
  ...deltas.map((delta): Event => ({ type: 'text_delta', part: 0, delta })),
  { type: 'text_end', part: 0, text: deltas.join('') },
];
const starts = (callIndex: number, summary: string): Event => ({
  type: 'tool_execution_start',
  args: {},
  ...label(callIndex, summary),
});
const ends = (callIndex: number, summary: string, outputSummary: string, isError = false): CallEnd => ({
  type: 'tool_execution_end',
  output: outputSummary,
  outputSummary,
  isError,
  ...label(callIndex, summary),
});
const START: Event = { type: 'session_start', model: 'anthropic/any', cwd: '/sample' };
const DONE: Event = { type: 'session_end', outcome: 'done', messages: [], usage: USAGE, cost: 0.01234 };

type Terminal = { readonly columns?: number; readonly env?: Record<string, string> };

async function shown(events: readonly Event[], { columns, env }: Terminal = {}): Promise<string> {
  const stream = new PassThrough();
  let text = '';
  stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const output: Output = Object.assign(stream, columns === undefined ? {} : { isTTY: true, columns });
  await feed(linesView(output, env ?? {}, 'asked known'), recorded(events));
  return `\n${text}`;
}

async function feed(view: View, events: readonly Recorded[]): Promise<void> {
  for (const event of events) await view.show(event);
  await view.close();
}

const SESSION: readonly Event[] = [
  START,
  ...says("I'll look at ", 'the test first.'),
  starts(0, 'read: test/slug.test.js'),
  ends(0, 'read: test/slug.test.js', '24 lines'),
  starts(0, 'shell: node --test'),
  ends(0, 'shell: node --test', '1 failing', true),
  ...says('It is the separator.\n'),
  { type: 'done', message: { role: 'assistant', content: [], stop: 'stop', usage: USAGE } },
  DONE,
];

test('lines: a session reads like a page', async () => {
  expect(await shown(SESSION)).toMatchInlineSnapshot(`
    "
    drover anthropic/any in /sample

    I'll look at the test first.

      ▸ read: test/slug.test.js
      ✓ 0.1 s  24 lines
      ▸ shell: node --test
      ✗ 0.1 s  1 failing

    It is the separator.

    ✓ done  1.5 s · 10,200 tokens in (9,000 from cache) · 345 out · $0.0123
    "
  `);
});

test('lines: a message to an agent at work leaves the time of its turn as it is', async () => {
  const message: Event = { type: 'message_start', role: 'user' };
  const turn = [message, starts(0, 'shell: make'), ends(0, 'shell: make', 'ok'), message, ...says('Yes.'), DONE];
  expect(await shown([START, ...turn.map((event) => ({ ...event, turn: 1 }))])).toContain('✓ done  0.8 s');
});

test('lines: concurrent calls name the call of each result', async () => {
  const events = [
    starts(0, 'shell: sleep 1'),
    starts(1, 'read: a.txt'),
    ends(1, 'read: a.txt', '3 lines'),
    ends(0, 'shell: sleep 1', '(no output)'),
  ];
  expect(await shown(events)).toMatchInlineSnapshot(`
    "
      ▸ shell: sleep 1
      ▸ read: a.txt
      ✓ 0.1 s  3 lines
      ✓ 0.3 s  shell: sleep 1 — (no output)
    "
  `);
});

test('lines: text of a failed attempt is retracted, and the wait is shown', async () => {
  const failure = { kind: 'provider.garbled', message: 'cut off' } as const;
  const reason = 'the answer arrived broken: cut off';
  const events: readonly Event[] = [
    ...says('Half an ans').slice(0, 3),
    { type: 'attempt_discarded', reason, failure },
    { type: 'retry', retry: 1, retriesMax: 7, delayMs: 1_250, failure, reason },
    ...says('The whole answer.'),
  ];
  expect(await shown(events)).toMatchInlineSnapshot(`
    "
    Half an ans

      ⨯ the text above does not count: the answer arrived broken: cut off
      ↻ retry 1 of 7 in 1.3 s

    The whole answer.
    "
  `);
});

test('lines: permission is asked, given or refused; a refused call appears once', async () => {
  const ask = (callIndex: number, summary: string): Event => ({
    type: 'permission_request',
    requestId: `ask_${callIndex}`,
    subject: 'x',
    why: 'no rule allows it',
    ...label(callIndex, summary),
  });
  const decide = (callIndex: number, summary: string, decision: Partial<Decision>): Event => ({
    type: 'permission_decision',
    requestId: `ask_${callIndex}`,
    allowed: false,
    by: 'user',
    always: false,
    ...decision,
    ...label(callIndex, summary),
  });
  const events = [
    ask(0, 'shell: make'),
    decide(0, 'shell: make', { allowed: true, always: true }),
    starts(0, 'shell: make'),
    ends(0, 'shell: make', 'ok'),
    ask(1, 'shell: rm -r x'),
    decide(1, 'shell: rm -r x', {}),
    ends(1, 'shell: rm -r x', 'Not allowed: the user said no', true),
    ask(2, 'shell: curl x'),
    decide(2, 'shell: curl x', { by: 'nobody', reason: 'nobody is there to ask' }),
    ends(3, 'shell: git push', 'Not allowed: a rule denies it', true),
  ];
  expect(await shown(events)).toMatchInlineSnapshot(`
    "
      ? shell: make — no rule allows it
      ✓ allowed from now on
      ▸ shell: make
      ✓ 0.1 s  ok
      ? shell: rm -r x — no rule allows it
      ✗ not allowed: you said no
      ? shell: curl x — no rule allows it
      ✗ not allowed: nobody is there to ask
      ✗ not allowed: shell: git push: a rule denies it
    "
  `);
});

test('lines: a reader that lagged gets the missing text at the end of the block', async () => {
  const missedTheEnd = [...says('one ').slice(0, 3), { type: 'text_end', part: 0, text: 'one two' }] as const;
  const missedTheMiddle = [
    ...says('one ', 'three').slice(0, 4),
    { type: 'text_end', part: 0, text: 'one two three' },
  ] as const;
  expect(await shown(missedTheEnd)).toBe('\none two\n');
  expect(await shown(missedTheMiddle)).toBe('\none three\none two three\n');
});

test('lines: an unsuccessful ending says why', async () => {
  const failure = { kind: 'limit.reached', limit: 'steps', message: 'the limit of 3 steps is reached' } as const;
  const events: readonly Event[] = [
    ...says('Not there yet.'),
    { type: 'incomplete', failure, reason: failure.message },
    {
      type: 'session_end',
      outcome: 'incomplete',
      reason: failure.message,
      messages: [],
      usage: { ...USAGE, estimated: true },
    },
  ];
  expect(await shown(events)).toMatchInlineSnapshot(`
    "
    Not there yet.

    ✗ incomplete: the limit of 3 steps is reached
      0.5 s · about 10,200 tokens in (9,000 from cache) · about 345 out
    "
  `);
});

test('lines: on a narrow terminal every line except the text fits', async () => {
  const long = 'shell: pnpm --filter ./packages/core test -- --reporter=verbose';
  const events = [START, starts(0, long), ends(0, long, '日本語の長い結果がここに表示されます。まだ続きます'), DONE];
  const text = await shown(events, { columns: 40, env: { NO_COLOR: '1' } });
  expect(text).toMatchInlineSnapshot(`
    "
    drover anthropic/any in /sample
      ▸ shell: pnpm --filter ./packages/cor…
      ✓ 0.1 s  日本語の長い結果がここに表示…

    ✓ done
      0.3 s
      10,200 tokens in (9,000 from cache)
      345 out
      $0.0123
    "
  `);
});

test.each<[string, Terminal, boolean]>([
  ['a terminal has colours', { columns: 80 }, true],
  ['a terminal with NO_COLOR has none', { columns: 80, env: { NO_COLOR: '1' } }, false],
  ['a dumb terminal has none', { columns: 80, env: { TERM: 'dumb' } }, false],
  ['a pipe has none', {}, false],
  ['a pipe with FORCE_COLOR has', { env: { FORCE_COLOR: '1' } }, true],
  ['a terminal with FORCE_COLOR=0 has none', { columns: 80, env: { FORCE_COLOR: '0' } }, false],
])('lines: %s', async (_, terminal, isColoured) => {
  expect((await shown(SESSION, terminal)).includes('\u001b[')).toBe(isColoured);
});

const EVIL = '\u001b]52;c;aGk=\u0007\u001b[2J\u009b31m\u001b[1;31mred\u202e\u0007\r\u0008';

test('lines: control sequences from models, tools and file names are removed', async () => {
  const events: readonly Event[] = [
    { ...START, model: `m${EVIL}`, cwd: `/c${EVIL}` },
    ...says(`text ${EVIL}`, 'split \u001b', ']0;tit', 'le\u0007 here \u001b[3', '1mtoo'),
    starts(0, `read: ${EVIL}`),
    ends(0, `read: ${EVIL}`, EVIL),
    { type: 'warning', message: EVIL },
    { type: 'permission_request', requestId: 'ask_1', subject: EVIL, why: EVIL, ...label(1, EVIL) },
    {
      type: 'permission_decision',
      requestId: 'ask_1',
      allowed: false,
      by: 'user',
      always: false,
      reason: EVIL,
      ...label(1, EVIL),
    },
    { type: 'attempt_discarded', reason: EVIL },
    { type: 'session_end', outcome: 'error', reason: EVIL, messages: [], usage: USAGE },
  ];
  const text = await shown(events, { columns: 80, env: { NO_COLOR: '1' } });
  expect(text).toMatchInlineSnapshot(`
    "
    drover mred in /cred

    text redsplit  here too

      ▸ read: red
      ✓ 0.1 s  red
      ! red
      ? red — red
      ✗ not allowed: red
      ⨯ the text above does not count: red

    ✗ error: red
      1.5 s · 10,200 tokens in (9,000 from cache) · 345 out
    "
  `);
  // eslint-disable-next-line no-control-regex
  expect(text).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
});

test('lines: a change is shown, shortened to its essential part', async () => {
  const diff = [
    '--- a/x.js',
    '+++ b/x.js',
    '@@ -1,3 +1,3 @@',
    ' one',
    '-two\t\u001b[2J',
    '+zwei',
    ...Array.from({ length: 20 }, (_, at) => `+${at}`),
  ];
  const output = `edited x.js (+21 -1)\n${diff.join('\n')}`;
  const end = {
    ...ends(0, 'edit: x.js', ''),
    output,
    details: { path: 'x.js', diff: diff.join('\n'), added: 21, removed: 1 },
  };
  expect(await shown([starts(0, 'edit: x.js'), end])).toMatchInlineSnapshot(`
    "
      ▸ edit: x.js
      ✓ 0.1 s  edited x.js (+21 -1)
           one
          -two  
          +zwei
          +0
          +1
          +2
          +3
          +4
          +5
          +6
          +7
          +8
          … 11 lines more
    "
  `);
});

test('lines: the result of a command or a search is a few words', async () => {
  const tell = (output: string, details: Json, isError = false): Event => ({
    ...ends(0, 'shell: x', 'summary', isError),
    output,
    details,
  });
  const events = [
    tell('one line', { exitCode: 0 }),
    tell('two\nlines', { exitCode: 0 }),
    tell('it\nfailed\n[exit code 3]', { exitCode: 3 }, true),
    tell('many\nmatches', {}),
    tell('there is no such file\nat all', {}, true),
  ];
  expect(await shown(events)).toMatchInlineSnapshot(`
    "
      ✓ shell: x — summary
      ✓ shell: x — 2 lines
      ✗ shell: x — exit code 3, 2 lines
      ✓ shell: x — 2 lines
      ✗ shell: x — there is no such file
    "
  `);
});

test('json: every event is one line, whatever it holds', async () => {
  const stream = new PassThrough();
  let text = '';
  stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const events = recorded([START, ...says(`line\nbreak\u2028${EVIL}`), DONE]);
  await feed(jsonView(stream), events);
  const lines = text.split('\n');
  expect(lines.pop()).toBe('');
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(events);
});

async function manyTurns(): Promise<void> {
  for (let turns = 0; turns < 100; turns++) await nextTurn();
}

test('json: the writer waits for a slow reader', async () => {
  const stream = new PassThrough({ highWaterMark: 64 });
  const [event] = recorded([{ type: 'warning', message: 'x'.repeat(200) }]);
  let isDone = false;
  const view = jsonView(stream);
  await view.show(event as Recorded);
  await manyTurns();
  const showing = Promise.resolve(view.show(event as Recorded)).then(() => (isDone = true));
  await manyTurns();
  expect(isDone).toBe(false);
  stream.resume();
  await showing;
});

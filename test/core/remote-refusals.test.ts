// Input that a session cannot take: refused with its reason, and nothing changes.

import { REMOTE_RESULT_BYTES_MAX, RemoteCallProblem } from '@drover/core/agent/calls/remote-calls';
import type { Shown } from '@drover/core/bus';
import { UsageError } from '@drover/core/errors';
import { expect, test } from 'vitest';
import { never, temporaryFolder } from '../support/agent.ts';
import { calls, keptSession, type Kept } from '../support/serve/remote-session.ts';

const SCRIPT = { answers: [calls('remote', 'local', 'remote', 'remote'), { text: 'ok' }] };

type Waiting = {
  readonly kept: Kept;
  readonly open: string; // a pending call
  readonly other: string; // another pending call
  readonly answered: string;
};

/** A session that waits for two results and already has a third. */
async function waiting(): Promise<Waiting> {
  const kept = await keptSession(await temporaryFolder(), SCRIPT);
  const [open, other, answered] = (await kept.run('go')).result.pending.map(({ callId }) => callId);
  await kept.session.deliver([{ callId: answered ?? '', output: 'here' }]);
  return { kept, open: open ?? '', other: other ?? '', answered: answered ?? '' };
}

/** Sends the invalid input, and checks that nothing changed. */
async function refused({ session, bytes, server }: Kept, deed: () => Promise<unknown>): Promise<Error> {
  const state = async () => [
    await bytes(),
    session.status,
    session.pending,
    session.conversation.messages,
    server.requests.length,
  ];
  const before = await state();
  const reader = session.bus.reader();
  const error = await deed().then(
    () => new Error('it was not refused'),
    (thrown: Error) => thrown,
  );
  await new Promise(setImmediate);
  expect(await state()).toEqual(before);
  reader.finish();
  const told: Shown[] = [];
  for await (const event of reader) told.push(event);
  expect(told).toEqual([]);
  return error;
}

type Deed = (waiting: Waiting) => readonly { readonly callId: string; readonly output: string }[];

const unfit: [string, RemoteCallProblem['kind'], Deed][] = [
  ['a call that never was', 'unknown', () => [{ callId: 'call_x', output: '' }]],
  ['a call that has its result', 'answered', ({ answered }) => [{ callId: answered, output: 'again' }]],
  [
    'a call for which there are two',
    'answered',
    ({ open }) => [
      { callId: open, output: 'one' },
      { callId: open, output: 'two' },
    ],
  ],
  ['too much', 'too-large', ({ open }) => [{ callId: open, output: 'ä'.repeat(REMOTE_RESULT_BYTES_MAX / 2 + 1) }]],
  [
    'a call that fits, and one that does not',
    'unknown',
    ({ open }) => [
      { callId: open, output: 'fits' },
      { callId: 'call_x', output: '' },
    ],
  ],
];

test.each(unfit)('a result of %s is refused as %s, with its whole delivery', async (_, kind, deed) => {
  const it = await waiting();
  const results = deed(it);
  for (const attempt of [
    () => it.kept.session.deliver(results),
    () => it.kept.run({ results }),
    async () => it.kept.session.run({ results }, never),
  ]) {
    const error = await refused(it.kept, attempt);
    expect(error).toBeInstanceOf(RemoteCallProblem);
    expect(error).toMatchObject({ kind, callId: results.at(-1)?.callId });
  }
});

test('a result of the maximum size is accepted', async () => {
  const { kept, open, other } = await waiting();
  const output = 'x'.repeat(REMOTE_RESULT_BYTES_MAX);
  expect((await kept.session.deliver([{ callId: open, output }])).map(({ callId }) => callId)).toEqual([other]);
});

test('a call of another session is unknown', async () => {
  const [mine, theirs] = [await waiting(), await waiting()];
  const error = await refused(mine.kept, () => mine.kept.session.deliver([{ callId: theirs.open, output: '' }]));
  expect(error).toMatchObject({ kind: 'unknown', message: `session s waits for no call ${theirs.open}` });
});

test('an answered call is known after the turn and in the next process', async () => {
  const home = await temporaryFolder();
  const first = await keptSession(home, SCRIPT);
  const results = (await first.run('go')).result.pending.map(({ callId }) => ({ callId, output: 'x' }));
  await first.run({ results });
  expect(await refused(first, () => first.session.deliver(results))).toMatchObject({ kind: 'answered' });
  await first.die();
  const second = await keptSession(home, SCRIPT);
  expect(await refused(second, () => second.session.deliver(results))).toMatchObject({ kind: 'answered' });
  expect(await refused(second, () => second.run({ results }))).toMatchObject({ kind: 'answered' });
});

test('a call that timed out has a result', async () => {
  const { kept, open } = await waiting();
  await kept.session.expire(Date.now() + 600_001);
  const error = await refused(kept, () => kept.session.deliver([{ callId: open, output: 'late' }]));
  expect(error).toMatchObject({ kind: 'answered' });
});

test('a waiting session refuses a message', async () => {
  const { kept } = await waiting();
  const message = await refused(kept, () => kept.run('meanwhile'));
  expect(message).toEqual(new UsageError('session s waits for the results of 2 remote calls'));
});

test('an active session refuses everything else', async () => {
  const home = await temporaryFolder();
  const kept = await keptSession(home, { answers: [{ text: 'slow', delayMs: 200 }] });
  const { session } = kept;
  const running = session.execute({ content: 'go' }, never);
  const seen = running[Symbol.asyncIterator]();
  await seen.next();
  const busy = new UsageError('session s is busy: wait for its turn to end, or cancel it');
  for (const deed of [
    () => kept.run('me too'),
    () => kept.run({ content: 'me first', cancelPending: true }),
    () => kept.run({ resume: true }),
    () => kept.run({ results: [] }),
    () => session.deliver([]),
    () => session.abandon(),
  ]) {
    expect(await deed().catch((error: unknown) => error)).toEqual(busy);
  }
  expect(await session.deliver([{ callId: 'call_x', output: '' }]).catch((error: unknown) => error)).toMatchObject({
    kind: 'unknown',
  });
  expect(await session.expire(Date.now())).toEqual([]);
  expect((await running.result()).messages).toHaveLength(2);
});

test('without pending calls there is nothing to give up, deliver or resume', async () => {
  const kept = await keptSession(await temporaryFolder(), { answers: [{ text: 'ok' }] });
  await kept.run('go');
  const none = new UsageError('session s waits for no results');
  expect(await refused(kept, () => kept.session.abandon())).toEqual(none);
  expect(await refused(kept, () => kept.run({ results: [] }))).toEqual(none);
  expect(await refused(kept, () => kept.run({ resume: true }))).toBeInstanceOf(UsageError);
});

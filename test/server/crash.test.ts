// A server that is killed and restarted: sessions resume, and readers miss nothing.

import type { Recorded } from '@drover/protocol/events';
import { expect } from 'vitest';
import { proves } from '../support/proves.ts';
import { serveProcess } from '../support/serve/serve-process.ts';

const NO_ARGUMENTS = { type: 'object', properties: {} };

const IT_SURVIVES = 'a session with a pending remote call survives kill -9 and tells each event once';

proves('remote.survives', IT_SURVIVES, async () => {
  const server = await serveProcess({
    answers: [
      { text: 'Three at once.', calls: [{ name: 'left' }, { name: 'elsewhere' }, { name: 'right' }] },
      { text: 'All three are done.' },
    ],
  });
  const isBack = Promise.withResolvers<void>();
  let runs = 0;
  const elsewhere = {
    description: 'Runs at the client.',
    schema: NO_ARGUMENTS,
    run: async () => {
      runs += 1;
      await isBack.promise;
      return 'elsewhere is done';
    },
  };
  const session = await server.client.session({ tools: { elsewhere } });
  const heard: Recorded[] = [];
  const listening = (async () => {
    for await (const event of server.client.events(session.id)) {
      if (!event.type.endsWith('_delta')) heard.push(event);
      if (event.type === 'session_end' && event.outcome === 'done') return;
    }
  })();

  const turn = await session.execute('Do all three.');
  for await (const event of server.client.events(session.id)) if (event.type === 'session_end') break;
  await server.kill();
  await server.start();
  isBack.resolve();
  const { outcome, messages, text } = await turn.result();
  await listening;

  expect({ outcome, text, runs }).toEqual({ outcome: 'done', text: 'All three are done.', runs: 1 });
  expect(heard).toEqual(await server.kept(session.id));
  expect((await server.ledger()).map((line) => line.split(' ')[1])).toEqual(['begins', 'begins', 'ends', 'ends']);
  const results = messages.flatMap((message) => (message.role === 'tool' ? message.results : []));
  expect(results.map(({ output }) => output)).toEqual(['left is done', 'elsewhere is done', 'right is done']);
});

const GOES_ON = 'a turn that a killed server left is resumed, and no tool runs twice';

proves('server.every-event-once', GOES_ON, async () => {
  const server = await serveProcess({
    answers: [
      { text: 'First.', calls: [{ name: 'left' }] },
      { text: 'It takes a while to say this.', tokensPerSecond: 2 },
      { text: 'Said at once.' },
    ],
    order: 'requests',
  });
  const session = await server.client.session({});
  const turn = await session.execute('Go.');
  const heard: Recorded[] = [];
  const reading = (async () => {
    for await (const event of turn) heard.push(event);
  })();
  for await (const event of server.client.events(session.id))
    if (event.type === 'text_delta' && event.step === 2) break;
  await server.kill();
  await server.start();
  const { outcome, text } = await turn.result();
  await reading;

  expect({ outcome, text }).toEqual({ outcome: 'done', text: 'Said at once.' });
  expect(await server.ledger()).toEqual(['left begins', 'left ends']);
  expect(heard.filter(({ type }) => !type.endsWith('_delta'))).toEqual((await server.kept(session.id)).slice(1));
});

const DISCARDED = 'an answer cut off by kill -9 is retracted for every reader after the restart';

proves('server.every-event-once', DISCARDED, async () => {
  const server = await serveProcess({
    answers: [{ text: 'This answer is cut off in the middle.', tokensPerSecond: 4 }, { text: 'This one is whole.' }],
    order: 'requests',
  });
  const session = await server.client.session({});
  const heard: Recorded[] = [];
  const turn = await session.execute('Go.');
  const reading = (async () => {
    for await (const event of turn) heard.push(event);
  })();
  for await (const event of server.client.events(session.id)) if (event.type === 'text_delta') break;
  const { partial, seq } = await session.snapshot();
  const toldBefore = heard.filter((event) => event.seq <= seq);
  expect(partial).toEqual([{ part: 0, type: 'text', text: textOf(toldBefore) }]);
  await server.kill();
  await server.start();
  await turn.result();
  await reading;
  const late: Recorded[] = [];
  for await (const event of server.client.events(session.id)) {
    late.push(event);
    if (event.type === 'session_end') break;
  }

  const discarded = { type: 'attempt_discarded', reason: 'drover was stopped before the answer was whole' };
  expect(await server.kept(session.id)).toContainEqual(expect.objectContaining({ ...discarded, worker: 0, turn: 1 }));
  for (const events of [heard, late]) {
    const types = events.map(({ type }) => type).filter((type) => ANSWER.test(type) && !type.endsWith('_delta'));
    expect(types).toEqual(['text_start', 'attempt_discarded', 'text_start', 'text_end']);
    const second = events.slice(events.findIndex(({ type }) => type === 'attempt_discarded'));
    expect(textOf(second)).toBe('This one is whole.');
  }
});

const ANSWER = /^(text_|attempt_discarded)/;

function textOf(events: readonly Recorded[]): string {
  return events.map((event) => (event.type === 'text_delta' ? event.delta : '')).join('');
}

// Events over broken connections: every durable one arrives exactly once, in order.

import type { Event, Recorded } from '@drover/protocol/events';
import { DroverClient } from '@drover/client/client';
import { DroverProblem } from '@drover/client/problem';
import type { Connection } from '@drover/client/stream';
import { expect, test, vi } from 'vitest';
import { Channel, frame, Stage } from './stage.ts';

const EVENTS = 40;
const warning = (message: string): Event => ({ type: 'warning', message });
const delta = (text: string): Event => ({ type: 'text_delta', part: 0, delta: text });
const END: Event = {
  type: 'run_end',
  outcome: 'done',
  exitCode: 0,
  tasks: [],
  usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
};

async function open(channel: Channel): Promise<{ readonly stage: Stage; readonly client: DroverClient }> {
  const stage = await Stage.open({
    'GET /v1/runs/:id': () => ({ body: { live: false } }),
    'GET /v1/runs/:id/events': () => channel,
    'GET /v1/sessions/:id/events': () => channel,
  });
  return { stage, client: new DroverClient({ baseUrl: `${stage.url}/`, token: 'secret' }) };
}

async function all(events: AsyncIterable<Recorded>): Promise<Recorded[]> {
  return Array.fromAsync(events);
}

function filled(): Channel {
  const channel = new Channel({ run: 'run_1' });
  for (let at = 0; at < EVENTS; at++) channel.emit(warning(`naïve 日本 🐑 ${at}`));
  channel.emit(END);
  return channel;
}

test('a stream written byte by byte is read whole', async () => {
  const channel = filled();
  channel.pieceBytes = 1;
  const { stage, client } = await open(channel);
  await using _ = stage;
  channel.endsAfterRun = false;
  const read: Recorded[] = [];
  for await (const event of client.runEvents('run_1')) {
    read.push(event);
    if (event.type === 'run_end') break;
  }
  expect(read).toEqual(channel.kept);
});

test('a cut connection resumes after the last event without loss or duplicates', async () => {
  const size = Buffer.byteLength(frame(filled().kept[5] as Recorded));
  const channel = filled();
  channel.endsAfterRun = false;
  // Cuts inside the first event, inside a character, after an event, and before its blank line is complete.
  channel.cuts = [3, 40, 12 + size, 13 + size * 2, 12 + size * 3 - 1, 500, 501, 502, 503, 2_000];
  const cuts = channel.cuts.length;
  const { stage, client } = await open(channel);
  await using _ = stage;
  const read: Recorded[] = [];
  for await (const event of client.runEvents('run_1')) {
    read.push(event);
    if (event.type === 'run_end') break;
  }
  expect(read).toEqual(channel.kept);
  expect(channel.connections).toBe(cuts + 1);
});

test('a run stream ends after run_end, even if the run was resumed in between', async () => {
  const channel = new Channel({ run: 'run_1' });
  channel.emit(warning('a'));
  channel.emit(END);
  channel.emit(warning('b'));
  channel.emit(END);
  const { stage, client } = await open(channel);
  await using _ = stage;
  expect((await all(client.runEvents('run_1'))).map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
  expect((await all(client.runEvents('run_1', { after: 4 }))).length).toBe(0);
});

test('a lost connection resumes after the last received delta', async () => {
  const channel = new Channel({ session: 'ses_1' });
  const { stage, client } = await open(channel);
  await using _ = stage;
  channel.emit(warning('a'));
  const read: string[] = [];
  for await (const event of client.events('ses_1')) {
    read.push(event.type === 'warning' ? event.message : event.type);
    if (read.length === 1) channel.emit(delta('one'));
    if (read.length === 2) {
      channel.drop('destroy');
      channel.emit(warning('b'));
    }
    if (read.length === 3) break;
  }
  expect(read).toEqual(['a', 'text_delta', 'b']);
  expect(channel.afters).toEqual([0, 2]);
});

test('the deltas of a block sum to its text, even if the server could not repeat some', async () => {
  const channel = new Channel({ session: 'ses_1' });
  const { stage, client } = await open(channel);
  await using _ = stage;
  channel.emit({ type: 'text_start', part: 0 });
  const read: Recorded[] = [];
  for await (const event of client.events('ses_1')) {
    read.push(event);
    if (event.type === 'text_start') channel.emit(delta('One '));
    if (event.type === 'text_end') break;
    if (read.length !== 2) continue;
    channel.drop('destroy');
    channel.emit(delta('two '));
    channel.emit({ type: 'text_end', part: 0, text: 'One two three' });
  }
  expect(read.map((event) => ('delta' in event ? event.delta : event.type))).toEqual([
    'text_start',
    'One ',
    'two three',
    'text_end',
  ]);
});

test('a reader that was too slow reconnects at once and misses nothing', async () => {
  const channel = new Channel({ session: 'ses_1' });
  const { stage, client } = await open(channel);
  await using _ = stage;
  channel.emit(warning('a'));
  const seen: Connection[] = [];
  const read: string[] = [];
  for await (const event of client.events('ses_1', { onConnection: (connection) => void seen.push(connection) })) {
    read.push(event.type === 'warning' ? event.message : event.type);
    if (read.length === 2) break;
    channel.say(`event: resync\ndata: {"type":"resync","seq":1,"reason":"too slow"}\n\n`);
    channel.drop('end');
    channel.emit(warning('b'));
  }
  expect(read).toEqual(['a', 'b']);
  expect(seen).toEqual([{ state: 'open' }, { state: 'lost', retryInMs: 0, reason: 'too slow' }, { state: 'open' }]);
});

test.each([false, true])(
  'a reconnect names the last known event and hears nothing twice (told twice: %s)',
  async (told) => {
    const channel = new Channel({ session: 'ses_1' });
    channel.isForgetful = told;
    const afters: number[] = [];
    await using stage = await Stage.open({
      'GET /v1/sessions/:id/events': ({ after }) => {
        afters.push(after);
        return channel;
      },
    });
    const client = new DroverClient({ baseUrl: stage.url, token: 'secret' });
    for (const message of ['a', 'b', 'c']) channel.emit(warning(message));
    const read: number[] = [];
    for await (const { seq } of client.events('ses_1')) {
      read.push(seq);
      if (seq === 3) {
        channel.drop('destroy');
        channel.emit(warning('d'));
      }
      if (seq === 4) break;
    }
    expect([read, afters]).toEqual([
      [1, 2, 3, 4],
      [0, 3],
    ]);
  },
);

test('after the end of an execution the next stream opens at once', async () => {
  const channel = new Channel({ session: 'ses_1' });
  const { stage, client } = await open(channel);
  await using _ = stage;
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  channel.emit({ type: 'session_end', outcome: 'suspended', messages: [], usage });
  const seen: Connection[] = [];
  for await (const event of client.events('ses_1', { onConnection: (connection) => void seen.push(connection) })) {
    if (event.type === 'warning') break;
    channel.drop('end');
    channel.emit(warning('b'));
  }
  const reason = 'the server closed the connection';
  expect(seen).toEqual([{ state: 'open' }, { state: 'lost', retryInMs: 0, reason }, { state: 'open' }]);
});

test.each([401, 403, 404, 422])('status %i is final', async (status) => {
  const refusal = { type: 'no', title: 'it said no', status, detail: 'ask nicely' };
  await using stage = await Stage.open({ 'GET /v1/sessions/:id/events': () => ({ status, body: refusal }) });
  const client = new DroverClient({ baseUrl: stage.url, token: 'secret' });
  const error = await all(client.events('ses_1')).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(DroverProblem);
  expect(error).toMatchObject({ status, type: 'no', title: 'it said no', detail: 'ask nicely' });
  expect(stage.asked).toEqual(['GET /v1/sessions/ses_1/events']);
});

test('JSON that is not a problem document is shown as the server sent it', async () => {
  const body = { type: 'proxy', title: 7 };
  await using stage = await Stage.open({ 'GET /v1/sessions/:id/events': () => ({ status: 404, body }) });
  const client = new DroverClient({ baseUrl: stage.url, token: 'secret' });
  const error = await all(client.events('ses_1')).catch((thrown: unknown) => thrown);
  const title = 'the server answered 404 Not Found';
  expect(error).toMatchObject({ status: 404, type: 'about:blank', title, detail: JSON.stringify(body) });
});

test('a 503 is waited out, up to the client’s patience', async () => {
  const channel = new Channel({ session: 'ses_1' });
  channel.emit(warning('a'));
  let asked = 0;
  await using stage = await Stage.open({
    'GET /v1/sessions/:id/events': () => {
      asked += 1;
      if (asked === 1) return channel;
      return asked > 2 ? 'hang up' : { status: 503, body: { type: 'busy', title: 'busy', status: 503 } };
    },
  });
  const client = new DroverClient({ baseUrl: stage.url, token: 'secret' });
  const read: Recorded[] = [];
  const reading = async () => {
    for await (const event of client.events('ses_1', { patienceMs: 50 })) {
      read.push(event);
      channel.drop('destroy');
    }
  };
  await expect(reading()).rejects.toThrow('fetch failed');
  expect(read).toEqual(channel.kept);
  expect(asked).toBeGreaterThan(2);
});

test('patience begins with the first failure, after any length of silence', async () => {
  const channel = new Channel({ session: 'ses_1' });
  channel.emit(warning('a'));
  const { stage, client } = await open(channel);
  await using _ = stage;
  const patienceMs = 1;
  for await (const event of client.events('ses_1', { patienceMs })) {
    if (event.seq === 2) break;
    const heardAt = Date.now();
    await vi.waitUntil(() => Date.now() > heardAt + 2 * patienceMs, { interval: 1 });
    channel.drop('destroy');
    channel.emit(warning('b'));
  }
  expect(channel.kept).toHaveLength(2);
});

test('an aborted caller gets the abort error, and the connection is closed', async () => {
  const channel = new Channel({ session: 'ses_1' });
  channel.emit(warning('a'));
  const { stage, client } = await open(channel);
  await using _ = stage;
  const stop = new AbortController();
  const reading = async () => {
    for await (const event of client.events('ses_1', { signal: stop.signal }))
      stop.abort(new Error(`enough after ${event.seq}`));
  };
  await expect(reading()).rejects.toThrow('enough after 1');
});

test('a body that is not an event stream is an error', async () => {
  await using stage = await Stage.open({ 'GET /v1/sessions/:id/events': () => ({ body: { hello: 1 } }) });
  const client = new DroverClient({ baseUrl: stage.url, token: 'secret' });
  await expect(all(client.events('ses_1'))).rejects.toThrow('instead of events');
});

// The server under load: a thousand streams, a stalled reader, and half a minute of reconnects.

import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { Agent, get, type IncomingMessage } from 'node:http';
import { expect } from 'vitest';
import { comingAndGoing } from '../../support/serve/coming-and-going.ts';
import { proves } from '../../support/proves.ts';
import { serveProcess } from '../../support/serve/serve-process.ts';
import { TOKEN } from '../../support/serve/serve-host.ts';

const IDLE = 1_000;
const STEPS = 10; // per turn, each with 4 MB of events
const TURNS = 5;
const GROWN_MB_MAX = 100;

const COMES_BACK = 'reconnecting every 50 ms for half a minute loses and repeats nothing';
proves('server.every-event-once', COMES_BACK, async () => {
  const { heard, kept, connections } = await comingAndGoing(30_000);
  expect(heard).toEqual(kept);
  expect(connections).toBeGreaterThan(100);
});

const BOUNDED = 'a thousand idle streams and a stalled one: others are served in bounded memory';
proves('server.bounded', BOUNDED, async () => {
  const calls = Array.from({ length: 20 }, () => ({ name: 'loud' }));
  const server = await serveProcess({
    answers: [...Array.from({ length: STEPS }, () => ({ calls })), { text: 'That was loud.' }],
    loop: true,
  });
  const { client } = server;
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
  const agent = new Agent({ maxSockets: IDLE + 8 });
  const stream = async (id: string): Promise<IncomingMessage> => {
    const asking = get(`${server.url}/v1/sessions/${id}/events`, { headers, agent });
    const [response] = (await once(asking, 'response')) as [IncomingMessage];
    expect(response.statusCode).toBe(200);
    // The test disconnects them when it has seen enough.
    response.on('error', () => undefined);
    return response;
  };
  const say = async (id: string): Promise<void> => {
    const body = JSON.stringify({ content: 'Be loud.' });
    const response = await fetch(`${server.url}/v1/sessions/${id}/execute`, { method: 'POST', headers, body });
    let last = '';
    for await (const chunk of response.body ?? []) last = (last + Buffer.from(chunk).toString()).slice(-100_000);
    expect(last).toContain('"outcome":"done"');
  };
  const [warm, quiet, loud] = [await client.session({}), await client.session({}), await client.session({})];
  for (let turn = 0; turn < TURNS; turn++) await say(warm.id);
  const idle = await Promise.all(Array.from({ length: IDLE }, () => stream(quiet.id)));
  for (const response of idle) response.resume();
  const stuck = await stream(loud.id);
  stuck.pause();
  const before = await residentMb(server.pid());

  for (let turn = 0; turn < TURNS; turn++) await say(loud.id);

  expect((await residentMb(server.pid())) - before).toBeLessThan(GROWN_MB_MAX);
  for (const response of idle) response.destroy();
  stuck.destroy();
});

const ALL_HEAR = 'a message in a session reaches a thousand readers';
proves('server.bounded', ALL_HEAR, async () => {
  const server = await serveProcess({ answers: [{ text: 'Hello to all of you.' }] });
  const session = await server.client.session({});
  const headers = { authorization: `Bearer ${TOKEN}` };
  const agent = new Agent({ maxSockets: IDLE + 8 });
  const all = Array.from({ length: IDLE }, async () => {
    const asking = get(`${server.url}/v1/sessions/${session.id}/events`, { headers, agent });
    const [response] = (await once(asking, 'response')) as [IncomingMessage];
    return text(response, 'event: session_end');
  });
  expect((await (await session.execute('Hello')).result()).text).toBe('Hello to all of you.');
  const heard = new Set(
    (await Promise.all(all)).map((each) => each.replaceAll(/id: \d+\nevent: \w+_delta\n.*\n\n/g, '')),
  );
  expect(heard.size).toBe(1);
});

async function text(response: IncomingMessage, end: string): Promise<string> {
  let heard = '';
  for await (const chunk of response) {
    heard += String(chunk);
    if (heard.includes(end)) break;
  }
  return heard;
}

async function residentMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024;
}

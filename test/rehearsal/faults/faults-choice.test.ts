// Which requests a fault hits, where in the stream, and how faults combine.

import { expect, test } from 'vitest';
import { at, dataIn, requestFor, send, stage } from '../clients.ts';
import { ANSWER, got } from '../tales.ts';

test('faults by number, by every nth, for one agent and by chance', async () => {
  const hits = async (faults: Parameters<typeof stage>[0]['faults'], seed?: number): Promise<string> => {
    const { server } = await stage({
      otherwise: { text: 'ok' },
      agents: { bob: [] },
      faults: faults ?? [],
      ...(seed !== undefined && { seed }),
    });
    const statuses = [];
    for (let n = 1; n <= 12; n++)
      statuses.push(
        (await send(server, 'openai', { body: requestFor('openai', {}, n % 2 === 0 ? 'bob' : 'eve') })).status,
      );
    return statuses.map((status) => (status === 200 ? '.' : 'x')).join('');
  };
  const down = { fault: 'status', status: 500 } as const;
  expect(await hits([{ ...down, at: [1, 4] }])).toBe('x..x........');
  expect(await hits([{ ...down, every: 5 }])).toBe('....x....x..');
  expect(await hits([{ ...down, agent: 'bob', at: [1, 3] }])).toBe('.x...x......');
  const drawn = await hits([{ ...down, rate: 0.5 }], 3);
  expect(drawn).toMatch(/x.*\.|\..*x/);
  expect(await hits([{ ...down, rate: 0.5 }], 3)).toBe(drawn);
  expect(await hits([{ ...down, rate: 0.5 }], 4)).not.toBe(drawn);
});

test('the place of a fault in the stream can be chosen', async () => {
  const after = async (position: number | 'nothing') => {
    const { body } = await got('anthropic', {
      fault: 'error-event',
      after: position,
      type: 'api_error',
      message: 'oh',
    });
    return dataIn(body).map((event) => at(event, 'type'));
  };
  expect(await after('nothing')).toEqual(['error']);
  expect(await after(0)).toEqual(['message_start', 'content_block_start', 'ping', 'error']);
  expect((await after(3)).filter((type) => type === 'content_block_delta')).toHaveLength(3);
  expect((await after(99)).slice(-2)).toEqual(['content_block_stop', 'error']);
});

test('several faults combine in one answer', async () => {
  const { server } = await stage({ answers: [{ ...ANSWER, fault: ['args-empty', 'crlf', 'chat-no-index', 'gzip'] }] });
  const response = await send(server, 'openai-chat', { body: requestFor('openai-chat', { stream: true }) });
  const text = await response.text();
  expect(text).toContain('\r\n');
  expect(dataIn(text).flatMap((chunk) => at(chunk, 'choices.0.delta.tool_calls') ?? [])).toEqual([
    { id: expect.any(String), type: 'function', function: { name: 'read', arguments: '' } },
  ]);
  expect(server.requests[0]?.faults).toEqual(['args-empty', 'crlf', 'chat-no-index', 'gzip']);
});

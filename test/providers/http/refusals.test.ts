// Responses other than an answer, and drover's reaction: end to end, for every provider.

import { describe as describeFailure, type Failure } from '@drover/protocol/failures';
import type { Api } from '@drover/core/model/catalog';
import type { Fault } from '@drover/rehearsal/faults/fault';
import { describe, expect, test } from 'vitest';
import { agentOn, APIS, rehearsal } from '../../support/agent.ts';
import { proves } from '../../support/proves.ts';

type Status = Omit<Extract<Fault, { fault: 'status' }>, 'fault'>;
type Tried = { readonly requests: number; readonly failure: Failure | undefined; readonly delays: readonly number[] };

/** The first request hits the fault; a retry gets an answer. Long waits are skipped. */
async function meets(api: Api, status: Status): Promise<Tried> {
  const { session, server } = await agentOn(
    { answers: [{ text: 'ok' }], faults: [{ at: 1, fault: 'status', ...status }] },
    { api },
  );
  const controller = new AbortController();
  const execution = session.execute({ content: 'go' }, controller.signal);
  const delays: number[] = [];
  let failure: Failure | undefined;
  for await (const event of execution) {
    if (event.type === 'retry') {
      delays.push(event.delayMs);
      failure = event.failure;
      if (event.delayMs > 100) controller.abort();
    }
    if (event.type === 'error') failure = event.failure;
  }
  await execution.result();
  return { requests: server.requests.length, failure, delays };
}

describe.each(APIS)('%s', (api) => {
  test.each([408, 409, 500, 502, 503, 504, 524, 529])('%i is retried', async (status) => {
    const { requests, delays, failure } = await meets(api, { status });
    expect({ requests, retries: delays.length, kind: failure?.kind }).toEqual({
      requests: 2,
      retries: 1,
      kind: 'provider.unavailable',
    });
  });

  test.each([400, 401, 402, 403, 404])('%i is not retried, and the message is the provider’s', async (status) => {
    const { requests, failure } = await meets(api, { status, message: `No, because of ${status}.` });
    expect(requests).toBe(1);
    expect(failure).toMatchObject({
      kind: 'provider.rejected',
      status,
      message: expect.stringContaining(`No, because of ${status}.`),
    });
  });

  test('an exhausted quota is not retried', async () => {
    const { requests, failure } = await meets(api, {
      status: 429,
      code: 'insufficient_quota',
      type: 'insufficient_quota',
      message: 'You exceeded your current quota, please check your plan and billing details.',
    });
    expect([requests, failure?.kind]).toEqual([1, 'provider.rejected']);
  });

  proves('retry.as-told', `${api}: a requested wait is kept, plus at most a quarter`, async () => {
    const waits: readonly (readonly [Record<string, string>, number])[] = [
      [{ 'retry-after-ms': '40' }, 40],
      [{ 'retry-after-ms': '1500', 'retry-after': '9' }, 1_500],
      [{ 'retry-after': '1' }, 1_000],
      [{ 'retry-after': new Date(Date.now() + 1_900).toUTCString() }, 0],
    ];
    for (const [headers, ms] of waits) {
      const { delays } = await meets(api, { status: 429, headers });
      expect(delays).toHaveLength(1);
      expect(delays[0]).toBeGreaterThanOrEqual(ms);
      expect(delays[0]).toBeLessThanOrEqual(ms === 0 ? 2_500 : ms * 1.25);
    }
  });

  test.each(['-5', 'NaN', 'Infinity', 'soon', new Date(0).toUTCString()])(
    'retry-after: %s means our own backoff, never at once',
    async (value) => {
      const { delays, requests } = await meets(api, { status: 429, headers: { 'retry-after': value } });
      expect([delays.length, requests]).toEqual([1, 2]);
      expect(delays[0]).toBeGreaterThan(0);
      expect(delays[0]).toBeLessThan(100);
    },
  );

  test('a wait that is too long ends the turn with its length', async () => {
    const { session, server } = await agentOn(
      {
        answers: [{ text: 'ok' }],
        faults: [{ at: 1, fault: 'status', status: 429, headers: { 'retry-after': '1000000000' } }],
      },
      { api },
    );
    const execution = session.execute({ content: 'go' }, new AbortController().signal);
    const { outcome } = await execution.result();
    expect(outcome).toMatchObject({ status: 'error', failure: { kind: 'provider.throttled', retryAfterMs: 1e12 } });
    expect('failure' in outcome && describeFailure(outcome.failure)).toMatch(
      /^the provider asks to wait 1000000000 s: /,
    );
    expect(server.requests).toHaveLength(1);
  });

  test('x-should-retry wins', async () => {
    expect((await meets(api, { status: 400, headers: { 'x-should-retry': 'true' } })).requests).toBe(2);
    expect((await meets(api, { status: 503, headers: { 'x-should-retry': 'false' } })).requests).toBe(1);
  });

  test.each(['html', 'plain', 'empty'] as const)(
    'a body that is %s is classified by status and never printed',
    async (body) => {
      const { failure, requests } = await meets(api, { status: 503, body });
      expect([failure?.kind, requests]).toEqual(['provider.unavailable', 2]);
      expect(JSON.stringify(failure)).not.toMatch(/<html|<body|<!doctype/i);
      const refused = await meets(api, { status: 404, body });
      expect(refused.failure?.kind).toBe('provider.rejected');
      expect(JSON.stringify(refused.failure)).not.toMatch(/<html|<body|<!doctype/i);
    },
  );

  test('retries are bounded', async () => {
    const { run, server } = await agentOn(
      { answers: [], otherwise: { fault: { fault: 'status', status: 503 } } },
      { api },
    );
    const { result } = await run('go');
    expect(result.outcome).toMatchObject({ status: 'error', failure: { kind: 'provider.unavailable' } });
    expect(server.requests).toHaveLength(4);
  });

  proves(
    'key.stays-home',
    `${api}: a redirect to another host is not followed, and the key isn’t sent there`,
    async () => {
      const stranger = await rehearsal({ answers: [{ text: 'give me your key' }], loop: true });
      const location = `${stranger.url.replace('127.0.0.1', 'localhost')}/v1/anything`;
      for (const status of [301, 302, 303, 307, 308]) {
        const { run } = await agentOn(
          { answers: [{ text: 'ok' }], faults: [{ at: 1, fault: 'redirect', location, status }] },
          { api },
        );
        const { result } = await run('go');
        expect(result.outcome).toMatchObject({
          status: 'error',
          failure: { kind: 'provider.rejected', message: expect.stringContaining('localhost') },
        });
      }
      expect(stranger.requests).toHaveLength(0);
    },
  );
});

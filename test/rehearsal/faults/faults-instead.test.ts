// Faults in place of an answer, as a client sees them.

import { expect, test } from 'vitest';
import { requestFor, send, stage } from '../clients.ts';
import { tales } from '../tales.ts';

test('faults in place of an answer', async () => {
  expect(await tales('instead')).toMatchInlineSnapshot(`
    "status: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"} → ended
    redirect: 307  → ended
    ok-error: 200 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"} → ended
    no-headers: 0  → open
    no-first-byte: 200  → open
    drop: 0  → broken"
  `);
});

test('a status fault carries headers and bodies of choice', async () => {
  const { server } = await stage({
    otherwise: { text: 'ok' },
    faults: [
      { at: 1, fault: 'status', status: 502, body: 'html' },
      { at: 2, fault: 'status', status: 500, body: 'empty' },
      { at: 3, fault: 'status', status: 503, body: 'plain', message: 'upstream connect error' },
      { at: 4, fault: 'status', status: 429, headers: { 'retry-after-ms': '1500', 'x-should-retry': 'false' } },
      { at: 5, fault: 'status', status: 400, type: 'weird_error', message: 'tokens per minute', code: 'odd' },
    ],
  });
  const seen = [];
  for (let n = 0; n < 5; n++) {
    const response = await send(server, 'openai', { body: requestFor('openai') });
    seen.push([
      response.status,
      response.headers.get('content-type'),
      response.headers.get('retry-after-ms'),
      (await response.text()).slice(0, 90),
    ]);
  }
  expect(seen).toEqual([
    [502, 'text/html', null, expect.stringMatching(/^<html>/)],
    [500, null, null, ''],
    [503, 'text/plain', null, 'upstream connect error'],
    [
      429,
      'application/json',
      '1500',
      '{"error":{"message":"Rate limit reached for requests.","type":"requests","param":null,"cod',
    ],
    [
      400,
      'application/json',
      null,
      '{"error":{"message":"tokens per minute","type":"weird_error","param":null,"code":"odd"}}',
    ],
  ]);
});

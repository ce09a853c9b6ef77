// Faults that write the same events in other bytes.

import { expect, test } from 'vitest';
import type { FaultName } from '@drover/rehearsal/faults/fault';
import type { Json } from '@drover/rehearsal/json';
import { APIS, dataIn, requestFor, send, stage } from '../clients.ts';
import { faultOf, got, named } from '../tales.ts';

test.each(named('bytes').flatMap((name) => APIS.map((api) => [name, api] as const)))(
  '%s (%s): the same events in other bytes',
  async (name, api) => {
    const steady = (body: string): readonly Json[] =>
      dataIn(
        body
          .replace(/^\uFEFF/, '')
          .replaceAll(/[0-9a-f]{20,}\w*/g, 'ID')
          .replaceAll(/"(created|created_at|completed_at)": ?\d+/g, '"$1":0'),
      );
    const plain = await got(api, undefined);
    const odd = await got(api, faultOf(name));
    expect(steady(odd.body)).toEqual(steady(plain.body));
    expect(odd.ending).toBe('ended');
  },
);

test('bytes are written as specified', async () => {
  const wire = async (name: FaultName) => (await got('anthropic', faultOf(name))).body;
  expect(await wire('crlf')).toMatch(/^event: message_start\r\ndata: \{.*\}\r\n\r\nevent/);
  expect(await wire('cr')).toMatch(/^event: message_start\rdata: [^\n]*$/);
  expect(await wire('bom')).toMatch(/^\uFEFFevent/);
  expect(await wire('comments')).toMatch(/^: still here\n\nevent/);
  expect(await wire('data-lines')).toMatch(/^event: message_start\ndata: \{\ndata: {2}"type": "message_start",\n/);
  expect(await wire('no-blank-line')).toMatch(/data: \{"type":"message_stop"\}$/);
  expect((await got('anthropic', faultOf('gzip'))).headers.get('content-encoding')).toBe('gzip');
});

test('a whole answer is compressed like a stream', async () => {
  const { headers, body } = await got('anthropic', faultOf('gzip'), {});
  expect([headers.get('content-type'), headers.get('content-encoding')]).toEqual(['application/json', 'gzip']);
  expect(JSON.parse(body)).toMatchObject({ type: 'message' });
});

test('one byte per write arrives in many pieces', async () => {
  const { server } = await stage({ answers: [{ text: 'hi', fault: 'one-byte' }] });
  const response = await send(server, 'openai-chat', { body: requestFor('openai-chat', { stream: true }) });
  let pieces = 0;
  for await (const _ of response.body ?? []) pieces += 1;
  expect(pieces).toBeGreaterThan(100);
});

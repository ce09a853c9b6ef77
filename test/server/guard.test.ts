// Access control: the security list, row by row, on a real socket. A stranger learns nothing and changes nothing.

import { readFile, readdir } from 'node:fs/promises';
import { journalPath } from '@drover/core/journal/session-journal';
import { httpHostsAt, isSameHttpSecret } from '@drover/server/http/guard';
import { Tickets } from '@drover/server/http/ticket';
import { expect, test } from 'vitest';
import { raw, type RawAnswer, request } from '../support/serve/raw-http.ts';
import { made, said, serveDesk, type ServeDesk } from '../support/serve/serve-desk.ts';
import { proves } from '../support/proves.ts';
import { TOKEN } from '../support/serve/serve-host.ts';

const BEARER = `authorization: Bearer ${TOKEN}`;
const JSON_BODY = '{"content":"Hello"}';

type Scene = { readonly desk: ServeDesk; readonly port: number; readonly id: string };

async function scene(): Promise<Scene> {
  const desk = await serveDesk({ answers: [{ text: 'Hello.' }] });
  const { port } = await desk.listen();
  return { desk, port, id: await made(desk) };
}

const journalOf = ({ desk, id }: Scene): Promise<Buffer> => readFile(journalPath(desk.home, id));

/** A request to a session, as a stranger would try it. */
function attempt({ port, id }: Scene, headers: readonly string[], type = 'application/json'): Promise<RawAnswer> {
  const all = [...headers, `content-type: ${type}`, `content-length: ${JSON_BODY.length}`];
  return raw(port, request(`POST /v1/sessions/${id}/execute HTTP/1.1`, all, JSON_BODY));
}

type Row = [string, number, string, (port: number) => readonly string[], type?: string];

const rows: readonly Row[] = [
  ['no token', 401, 'unauthorized', (port) => [`host: 127.0.0.1:${port}`]],
  ['a wrong token', 401, 'unauthorized', (port) => [`host: 127.0.0.1:${port}`, `authorization: Bearer ${TOKEN}x`]],
  ['half of the token', 401, 'unauthorized', (port) => [`host: 127.0.0.1:${port}`, `${BEARER.slice(0, -8)}`]],
  ['an empty token', 401, 'unauthorized', (port) => [`host: 127.0.0.1:${port}`, 'authorization: Bearer ']],
  [
    'the token as a password',
    401,
    'unauthorized',
    (port) => [`host: 127.0.0.1:${port}`, `authorization: Basic ${Buffer.from(`x:${TOKEN}`).toString('base64')}`],
  ],
  ['the token in a cookie', 401, 'unauthorized', (port) => [`host: 127.0.0.1:${port}`, `cookie: token=${TOKEN}`]],
  ['a name that leads here by a trick', 403, 'host.foreign', (port) => [`host: evil.example:${port}`, BEARER]],
  ['our name in front of another', 403, 'host.foreign', (port) => [`host: 127.0.0.1.evil.example:${port}`, BEARER]],
  ['our name before an @', 400, 'request.malformed', (port) => [`host: 127.0.0.1:${port}@evil.example`, BEARER]],
  ['another port', 403, 'host.foreign', (port) => [`host: 127.0.0.1:${port + 1}`, BEARER]],
  ['no port', 403, 'host.foreign', () => ['host: 127.0.0.1', BEARER]],
  ['another address that leads here', 403, 'host.foreign', (port) => [`host: 127.0.0.2:${port}`, BEARER]],
  ['an empty name', 403, 'host.foreign', () => ['host: ', BEARER]],
  ['no name at all', 403, 'host.foreign', () => [BEARER]],
  [
    'a page from elsewhere',
    403,
    'origin.foreign',
    (port) => [`host: 127.0.0.1:${port}`, 'origin: https://evil.example', BEARER],
  ],
  ['a page without an origin', 403, 'origin.foreign', (port) => [`host: 127.0.0.1:${port}`, 'origin: null', BEARER]],
  [
    'a page of another port',
    403,
    'origin.foreign',
    (port) => [`host: 127.0.0.1:${port}`, `origin: http://127.0.0.1:${port + 1}`, BEARER],
  ],
  [
    'a page of another scheme',
    403,
    'origin.foreign',
    (port) => [`host: 127.0.0.1:${port}`, `origin: https://127.0.0.1:${port}`, BEARER],
  ],
  [
    'a page of this machine’s files',
    403,
    'origin.foreign',
    (port) => [`host: 127.0.0.1:${port}`, 'origin: file://', BEARER],
  ],
  [
    'a browser that says it is another site',
    403,
    'origin.foreign',
    (port) => [`host: 127.0.0.1:${port}`, 'sec-fetch-site: cross-site', BEARER],
  ],
  [
    'a browser that says it is a neighbour',
    403,
    'origin.foreign',
    (port) => [`host: 127.0.0.1:${port}`, 'sec-fetch-site: same-site', BEARER],
  ],
  [
    'a form',
    415,
    'content_type.unfit',
    (port) => [`host: 127.0.0.1:${port}`, BEARER],
    'application/x-www-form-urlencoded',
  ],
  [
    'plain text, as any page may send it',
    415,
    'content_type.unfit',
    (port) => [`host: 127.0.0.1:${port}`, BEARER],
    'text/plain',
  ],
  [
    'a form with files',
    415,
    'content_type.unfit',
    (port) => [`host: 127.0.0.1:${port}`, BEARER],
    'multipart/form-data; boundary=x',
  ],
  [
    'text that says it is JSON, too',
    415,
    'content_type.unfit',
    (port) => [`host: 127.0.0.1:${port}`, BEARER],
    'text/plain, application/json',
  ],
];

for (const [name, status, type, headers, contentType] of rows)
  proves('server.strangers-out', `${name} is refused with ${status}, and changes nothing`, async () => {
    const where = await scene();
    const before = await journalOf(where);

    const answer = await attempt(where, headers(where.port), contentType);

    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body)).toMatchObject({ type, status });
    expect(answer.head).not.toMatch(/access-control/i);
    expect(`${answer.head}${answer.body}`).not.toContain(TOKEN);
    expect(await journalOf(where)).toEqual(before);
    expect(where.desk.model.requests).toEqual([]);
  });

test('the same request without a mistake is served, also from this server’s page', async () => {
  const where = await scene();
  const own = [
    `host: LOCALHOST:${where.port}`,
    `origin: http://localhost:${where.port}`,
    'sec-fetch-site: same-origin',
  ];
  const answer = await attempt(where, [...own, BEARER], 'application/json; charset=utf-8');
  expect([answer.status, answer.body]).toEqual([200, expect.stringContaining('event: session_end') as string]);
});

test('a foreign page’s preflight request is refused', async () => {
  const { port, id } = await scene();
  const asks = [
    'origin: https://evil.example',
    'access-control-request-method: POST',
    'access-control-request-headers: authorization',
  ];
  const answer = await raw(
    port,
    request(`OPTIONS /v1/sessions/${id}/execute HTTP/1.1`, [`host: 127.0.0.1:${port}`, ...asks]),
  );
  expect(answer.status).toBe(403);
  expect(answer.head).not.toMatch(/access-control/i);
});

test('a target that names another host is still checked by the Host header', async () => {
  const { port } = await scene();
  const foreign = await raw(port, request('GET http://evil.example/healthz HTTP/1.1', ['host: evil.example', BEARER]));
  expect(foreign.status).toBe(403);
  const two = await raw(
    port,
    request('GET /healthz HTTP/1.1', ['host: evil.example', `host: 127.0.0.1:${port}`, BEARER]),
  );
  expect([400, 403]).toContain(two.status);
});

test('a token in the address is ignored, and not repeated', async () => {
  const { desk, port } = await scene();
  for (const query of [`?token=${TOKEN}`, `?access_token=${TOKEN}`]) {
    const answer = await raw(port, request(`GET /healthz${query} HTTP/1.1`, [`host: 127.0.0.1:${port}`]));
    expect([answer.status, `${answer.head}${answer.body}`]).toEqual([
      401,
      expect.not.stringContaining(TOKEN) as string,
    ]);
  }
  expect(desk.diagnoses.join('\n')).not.toContain(TOKEN);
});

test('every route needs the token, except page files and the ticket exchange', async () => {
  const { desk } = await scene();
  const { paths } = (await (await desk.ask('GET', '/v1/openapi.json')).json()) as {
    paths: Record<string, Record<string, { security?: readonly [] }>>;
  };
  const open: string[] = [];
  for (const [path, operations] of Object.entries(paths))
    for (const [method, { security }] of Object.entries(operations)) {
      const answer = await desk.ask(
        method.toUpperCase(),
        path.replaceAll(/\{\w+\}/g, 'x'),
        method === 'post' ? {} : undefined,
        {
          authorization: '',
        },
      );
      if (security !== undefined) open.push(`${method} ${path}`);
      else expect([path, answer.status]).toEqual([path, 401]);
    }
  expect(open).toEqual(['post /v1/ticket']);
  expect((await desk.ask('GET', '/v1/nowhere', undefined, { authorization: '' })).status).toBe(401);
});

test('a ticket works once, and a wrong one never', async () => {
  const tickets = new Tickets();
  const desk = await serveDesk({}, { tickets });
  const redeemed = async (ticket: string): Promise<unknown> => {
    const answer = await desk.ask('POST', '/v1/ticket', { ticket }, { authorization: '' });
    return [answer.status, await answer.json()];
  };
  const ticket = tickets.issue();
  expect(await redeemed('x')).toMatchObject([401, { type: 'ticket.unfit' }]);
  expect(await redeemed(ticket)).toEqual([200, { token: TOKEN }]);
  expect(await redeemed(ticket)).toMatchObject([401, { type: 'ticket.unfit' }]);
  const foreign = await desk.ask('POST', '/v1/ticket', { ticket: tickets.issue() }, { origin: 'http://evil.example' });
  expect(foreign.status).toBe(403);
});

test('secrets are equal only if the whole texts are equal', () => {
  expect([
    isSameHttpSecret('abc', 'abc'),
    isSameHttpSecret('abc', 'abd'),
    isSameHttpSecret('abc', 'ab'),
    isSameHttpSecret('abc', ''),
  ]).toEqual([true, false, false, false]);
});

test('the names of a server are its addresses, not any name that resolves to it', () => {
  const local = ['127.0.0.1:7117', 'localhost:7117', '[::1]:7117'];
  expect(httpHostsAt('127.0.0.1', 7117)).toEqual(local);
  expect(httpHostsAt('192.0.2.7', 7117)).toEqual([...local, '192.0.2.7:7117']);
  expect(httpHostsAt('2001:db8::1', 7117)).toEqual([...local, '[2001:db8::1]:7117']);
  expect(httpHostsAt('0.0.0.0', 7117)).toEqual(expect.arrayContaining(['127.0.0.1:7117']));
  expect(httpHostsAt('127.0.0.1', 80)).toContain('localhost');
});

test('ids of one session do not open another', async () => {
  const desk = await serveDesk(
    { answers: [{ calls: [{ name: 'shell', args: { command: 'true' } }] }, { text: 'Done.' }] },
    { asks: ['shell'] },
  );
  const [one, other] = [await made(desk), await made(desk)];
  const stream = await desk.ask('POST', `/v1/sessions/${one}/execute`, { content: 'Go' });
  let requestId = '';
  while (requestId === '') {
    const { questions } = (await (await desk.ask('GET', `/v1/sessions/${one}`)).json()) as {
      questions: { requestId: string }[];
    };
    requestId = questions[0]?.requestId ?? '';
  }
  const answer = (id: string, body: object): Promise<Response> =>
    desk.ask('POST', `/v1/sessions/${id}/permissions/${requestId}`, body);
  expect((await answer(other, { allowed: true })).status).toBe(404);
  expect(
    (await desk.ask('POST', `/v1/runs/${one.replace('ses', 'run')}/permissions/${requestId}`, { allowed: true }))
      .status,
  ).toBe(404);
  expect((await answer(one, { allowed: false })).status).toBe(204);
  await stream.body?.cancel();
});

test.each([
  '..',
  '%2e%2e',
  'ses_0',
  `ses_${'0'.repeat(32)}`,
  `ses_${'0'.repeat(32)}%2f..%2f..`,
  '%00',
  '%E0%A4%A',
  'SES_',
])('an id like %s finds nothing on any route', async (id) => {
  const desk = await serveDesk({});
  const asked = [
    desk.ask('GET', `/v1/sessions/${id}`),
    desk.ask('GET', `/v1/sessions/${id}/events`),
    desk.ask('DELETE', `/v1/sessions/${id}`),
    desk.ask('POST', `/v1/sessions/${id}/execute`, { content: 'x' }),
    desk.ask('POST', `/v1/sessions/${id}/cancel`, {}),
    desk.ask('GET', `/v1/runs/${id}/events`),
  ];
  for (const answer of await Promise.all(asked)) expect([404, 405]).toContain(answer.status);
  expect(await readdir(desk.home)).toEqual(['root']);
});

test('the token is in no log and in no stored file', async () => {
  const { desk, id } = await scene();
  await said(desk, id, 'Hello');
  await desk.ask('POST', '/v1/sessions', { model: TOKEN });
  const kept = await readFile(journalPath(desk.home, id), 'utf8');
  expect(`${desk.diagnoses.join('\n')}${kept}`).not.toContain(TOKEN);
});

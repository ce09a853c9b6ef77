// The OpenAPI document: complete, and true for the server's real answers, route by route.

import { expect, test } from 'vitest';
import { z } from 'zod';
import { desk, servedHere } from '../cli/serve/served.ts';
import { serveDesk } from '../support/serve/serve-desk.ts';

type Content = Readonly<Record<string, { readonly schema: object }>>;
type Operation = {
  readonly operationId: string;
  readonly summary: string;
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly required: boolean }[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Content }>>;
};
type Document = {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>>; readonly securitySchemes: object };
};

/** The fields that the tests read from answers. */
type Answer = { readonly id?: string; readonly seq?: number; readonly text?: string };

const ROUTES = [
  'delete /v1/sessions/{id}',
  'get /healthz',
  'get /v1/openapi.json',
  'get /v1/runs',
  'get /v1/runs/{id}',
  'get /v1/runs/{id}/diff',
  'get /v1/runs/{id}/events',
  'get /v1/runs/{id}/tasks/{task}/diff',
  'get /v1/server',
  'get /v1/sessions',
  'get /v1/sessions/{id}',
  'get /v1/sessions/{id}/events',
  'post /v1/runs',
  'post /v1/runs/{id}/cancel',
  'post /v1/runs/{id}/merge',
  'post /v1/runs/{id}/pause',
  'post /v1/runs/{id}/permissions/{requestId}',
  'post /v1/runs/{id}/plan',
  'post /v1/runs/{id}/resume',
  'post /v1/runs/{id}/retry',
  'post /v1/runs/{id}/tasks/{task}/cancel',
  'post /v1/runs/{id}/tasks/{task}/messages',
  'post /v1/sessions',
  'post /v1/sessions/{id}/cancel',
  'post /v1/sessions/{id}/execute',
  'post /v1/sessions/{id}/permissions/{requestId}',
  'post /v1/sessions/{id}/tool-results',
  'post /v1/ticket',
];

const operationsOf = ({ paths }: Document): readonly (readonly [string, Operation])[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [`${method} ${path}`, operation] as const),
  );

test('the document is complete: routes, parameters, closed bodies, described answers', async () => {
  const { ask } = await serveDesk({});
  const document = (await (await ask('GET', '/v1/openapi.json')).json()) as Document;
  const operations = operationsOf(document);
  expect(document.openapi).toBe('3.1.0');
  expect(operations.map(([route]) => route).toSorted()).toEqual(ROUTES);
  expect(new Set(operations.map(([, { operationId }]) => operationId)).size).toBe(operations.length);
  for (const [route, { parameters, requestBody, responses, summary }] of operations) {
    const named = [...route.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    expect([route, parameters.filter((each) => each.in === 'path').map(({ name }) => name)]).toEqual([route, named]);
    expect(summary).not.toBe('');
    expect(route.startsWith('post')).toBe(requestBody !== undefined);
    for (const { schema } of Object.values(requestBody?.content ?? {}))
      expect(schema).toMatchObject({ type: 'object', additionalProperties: false });
    for (const { description } of Object.values(responses)) expect(description).not.toBe('');
    expect(Object.keys(responses)).toEqual(expect.arrayContaining(['401', '403', '500', '503']));
  }
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)];
  expect(new Set(references.map(([, name]) => name))).toEqual(new Set(Object.keys(document.components.schemas)));
  expect(JSON.stringify(document).match(/"\$ref"/g)?.length).toBe(references.length);
});

/** Sends a request, and compares the answer with the route's schema in the document. */
class Witness {
  readonly seen = new Set<string>();
  readonly events = new Set<string>(); // event types received so far
  readonly #document: Document;
  readonly #url: string;
  readonly #headers: Record<string, string>;

  constructor(document: Document, url: string, token: string) {
    this.#document = document;
    this.#url = url;
    this.#headers = { authorization: `Bearer ${token}` };
  }

  async ask(route: string, params: Record<string, string>, body?: object, headers = {}): Promise<Answer> {
    const [method = '', path = ''] = route.split(' ');
    const operation = this.#document.paths[path]?.[method];
    const response = await fetch(
      `${this.#url}${path.replaceAll(/\{(\w+)\}/g, (_, name: string) => params[name] ?? '')}`,
      {
        method: method.toUpperCase(),
        headers: { ...this.#headers, ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      },
    );
    this.seen.add(`${route} ${response.status}`);
    const described = operation?.responses[String(response.status)];
    expect([route, response.status, described?.description]).toEqual([route, response.status, expect.any(String)]);
    const type = response.headers.get('content-type') ?? '';
    const text = await response.text();
    if (text === '') {
      expect([route, described?.content]).toEqual([route, undefined]);
      return {};
    }
    const schema = described?.content?.[type]?.schema;
    expect([route, type, schema]).toEqual([route, type, expect.any(Object)]);
    if (type === 'text/event-stream') {
      this.#checkEvents(text);
      return { text };
    }
    const answer = JSON.parse(text) as Answer;
    const whole = { ...this.#resolved(schema ?? {}), $schema: 'https://json-schema.org/draft/2020-12/schema' };
    const checked = z.fromJSONSchema(whole as Parameters<typeof z.fromJSONSchema>[0]).safeParse(answer);
    expect([route, checked.error?.issues ?? []]).toEqual([route, []]);
    return answer;
  }

  /** Each event matches its type's schema in the document. */
  #checkEvents(text: string): void {
    const { schemas } = this.#document.components;
    const { discriminator } = schemas['Event'] as { discriminator: { mapping: Record<string, string> } };
    const kinds = JSON.stringify(schemas['FailureKind']);
    for (const [, data = ''] of text.matchAll(/^data: (.*)$/gm)) {
      const event = JSON.parse(data) as { readonly type: string };
      const schema = this.#resolved({ $ref: discriminator.mapping[event.type] });
      const inlined = JSON.stringify(schema).replaceAll('{"$ref":"#/components/schemas/FailureKind"}', kinds);
      const checked = z.fromJSONSchema(JSON.parse(inlined) as Parameters<typeof z.fromJSONSchema>[0]).safeParse(event);
      expect([event.type, checked.error?.issues ?? []]).toEqual([event.type, []]);
      this.events.add(event.type);
    }
  }

  #resolved(schema: object): object {
    const name = '$ref' in schema ? String(schema.$ref).split('/').at(-1) : undefined;
    return name === undefined ? schema : (this.#document.components.schemas[name] ?? {});
  }
}

test('every route answers as the document says', async () => {
  const { where, token, client } = await servedHere(await desk());
  const witness = new Witness((await client.openApi()) as unknown as Document, where.url, token);
  const tool = { name: 'far_away', description: 'Far.', schema: { type: 'object', properties: {} } };
  await witness.ask('get /healthz', {});
  await witness.ask('get /v1/openapi.json', {});
  const info = await witness.ask('get /v1/server', {});
  expect(info).toMatchObject({
    root: expect.stringMatching(/\/project$/) as string,
    models: expect.any(Array) as object,
  });
  await witness.ask('post /v1/ticket', {}, { ticket: 'wrong' });

  const { id = '' } = await witness.ask('post /v1/sessions', {}, { tools: [tool] });
  await witness.ask('post /v1/sessions', {}, { colour: 'red' });
  await witness.ask('post /v1/sessions/{id}/execute', { id }, { content: 'Far away' });
  await witness.ask('post /v1/sessions/{id}/execute', { id }, { content: 'Hello?' });
  await witness.ask('post /v1/sessions/{id}/permissions/{requestId}', { id, requestId: 'ask_0' }, { allowed: true });
  const waiting = await witness.ask('get /v1/sessions/{id}', { id });
  expect(waiting).toMatchObject({ status: 'awaiting_tool_execution', tools: [tool], pending: [{ name: 'far_away' }] });
  await witness.ask('post /v1/sessions/{id}/tool-results', { id }, { results: [{ callId: 'call_0', output: '' }] });
  await witness.ask('post /v1/sessions/{id}/cancel', { id }, {});
  await witness.ask('get /v1/sessions', {});
  await witness.ask('get /v1/sessions/{id}/events', { id }, undefined, { 'last-event-id': 'x' });
  await witness.ask('delete /v1/sessions/{id}', { id });
  for (const route of ['get /v1/sessions/{id}', 'get /v1/sessions/{id}/events', 'delete /v1/sessions/{id}'])
    await witness.ask(route, { id });

  const { id: begun = '' } = await witness.ask('post /v1/runs', {}, { goal: 'one file', workers: 1 });
  const run = { id: begun, task: 'one', requestId: 'ask_0' };
  await witness.ask('get /v1/runs/{id}/events', run);
  const ended = await witness.ask('get /v1/runs/{id}', run);
  expect(ended).toMatchObject({ state: 'done', rows: [{ task: 'one', status: 'landed' }] });
  await witness.ask('get /v1/runs/{id}/events', run, undefined, { 'last-event-id': String(ended.seq) });
  await witness.ask('get /v1/runs', {});
  await witness.ask('get /v1/runs/{id}/tasks/{task}/diff', run);
  await witness.ask('get /v1/runs/{id}/tasks/{task}/diff', { ...run, task: 'none' });
  await witness.ask('get /v1/runs/{id}/diff', run);
  await witness.ask('post /v1/runs/{id}/merge', run, {});
  for (const route of ['resume', 'retry']) await witness.ask(`post /v1/runs/{id}/${route}`, run, {});
  await witness.ask('post /v1/runs/{id}/plan', run, { answer: 'stop' });
  await witness.ask('post /v1/runs/{id}/cancel', run, {});
  await witness.ask('post /v1/runs/{id}/pause', run, { paused: true });
  await witness.ask('post /v1/runs/{id}/tasks/{task}/messages', run, { text: 'too late' });
  await witness.ask('post /v1/runs/{id}/tasks/{task}/cancel', run, {});
  await witness.ask('post /v1/runs/{id}/permissions/{requestId}', run, { allowed: true });
  await witness.ask('post /v1/runs', {}, { goal: '' });
  await witness.ask('get /v1/runs', {}, undefined, { authorization: 'Bearer no' });

  // A session with a remote call, and a whole run.
  expect([...witness.events]).toEqual(expect.arrayContaining(['awaiting_tool_execution', 'task_end', 'run_end']));
  expect(new Set([...witness.seen].map((each) => each.split(' ').slice(0, 2).join(' ')))).toEqual(new Set(ROUTES));
});

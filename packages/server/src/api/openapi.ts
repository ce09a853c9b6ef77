// The OpenAPI document, made from the routes and their schemas.

import { z } from 'zod';
import { eventSchemas, failureKind } from './event-schemas.ts';
import type { Answer, QueryNumber, Route } from './routes.ts';
import * as schemas from './schemas.ts';

// Answers that every route may give before it runs.
const REFUSALS = [401, 403, 500, 503];
const BODY_REFUSALS = [400, 413, 415, 422];

const MEANINGS: Readonly<Record<number, string>> = {
  400: 'The body is not JSON, or a number in the query or in Last-Event-ID is none',
  401: 'The token is missing or wrong',
  403: 'Not meant for this server, or from a foreign page',
  404: 'There is no such thing',
  409: 'Something is in the way',
  413: 'Too large',
  415: 'The body is not application/json',
  422: 'The body is not what this route takes; `errors` says where',
  500: 'An error in the server itself',
  503: 'Too much at once, or about to end',
};

export function openApiDocument(routes: readonly Route[], version: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method]: openApiOperation(route) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'drover serve',
      version,
      description:
        'Sessions with remote tools, and runs, over HTTP. Events come as server-sent events, with `seq` as id.',
    },
    paths,
    components: {
      schemas: {
        Problem: openApiSchema(schemas.problem),
        FailureKind: openApiSchema(failureKind),
        Event: openApiEventUnion(),
        ...Object.fromEntries(
          eventSchemas.map(({ name, schema }) => [name, openApiWithFailureKind(openApiSchema(schema))]),
        ),
      },
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    },
    security: [{ token: [] }],
  };
}

function openApiOperation(route: Route): object {
  const { name, about, path, body, query = [], answer, needsToken } = route;
  return {
    operationId: name,
    summary: about,
    ...(!needsToken && { security: [] }),
    parameters: [
      ...openApiParameters(path),
      ...query.map(openApiQueryParameter),
      ...(answer.kind === 'events' && body === undefined ? [LAST_EVENT_ID] : []),
    ],
    ...(body !== undefined && {
      requestBody: { required: true, content: { 'application/json': { schema: openApiSchema(body) } } },
    }),
    responses: { ...openApiResponses(answer), ...openApiRefusals(route) },
  };
}

const LAST_EVENT_ID = {
  name: 'Last-Event-ID',
  in: 'header',
  required: false,
  description: 'The number of the last event that is known; without it, all are sent',
  schema: { type: 'integer', minimum: 0 },
};

function openApiQueryParameter({ name, about }: QueryNumber): object {
  return { name, in: 'query', required: false, description: about, schema: { type: 'integer', minimum: 0 } };
}

function openApiParameters(path: string): readonly object[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
}

function openApiResponses(answer: Answer): object {
  switch (answer.kind) {
    case 'json':
      return {
        [answer.status]: {
          description: 'Done',
          content: { 'application/json': { schema: openApiSchema(answer.schema) } },
        },
      };
    case 'events':
      return {
        200: {
          description: 'Server-sent events: `id` is the event’s seq, `event` its type, `data` the event as JSON',
          content: { 'text/event-stream': { schema: openApiReference('Event') } },
        },
        204: { description: 'The stream has ended' },
      };
    case 'nothing':
      return { 204: { description: 'Done' } };
  }
}

function openApiRefusals({ body, answer, refusals }: Route): object {
  const ofBody = body === undefined ? [] : BODY_REFUSALS;
  const ofStream = answer.kind === 'events' ? [400] : [];
  const statuses = new Set([...REFUSALS, ...ofBody, ...ofStream, ...refusals]);
  return Object.fromEntries(
    [...statuses]
      .toSorted((a, b) => a - b)
      .map((status) => [
        status,
        {
          description: MEANINGS[status] ?? '',
          content: { 'application/problem+json': { schema: openApiReference('Problem') } },
        },
      ]),
  );
}

function openApiReference(name: string): object {
  return { $ref: `#/components/schemas/${name}` };
}

function openApiEventUnion(): object {
  const mapping = Object.fromEntries(eventSchemas.map(({ type, name }) => [type, `#/components/schemas/${name}`]));
  return {
    oneOf: eventSchemas.map(({ name }) => openApiReference(name)),
    discriminator: { propertyName: 'type', mapping },
  };
}

/** The same schema; the kinds of failures are listed once in the document. */
function openApiWithFailureKind(schema: object): object {
  const listed = JSON.stringify(openApiSchema(failureKind));
  return JSON.parse(
    JSON.stringify(schema).replaceAll(listed, JSON.stringify(openApiReference('FailureKind'))),
  ) as object;
}

function openApiSchema(schema: z.ZodType): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input', reused: 'inline' });
  return rest;
}

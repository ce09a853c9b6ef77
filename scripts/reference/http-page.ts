// The reference page of HTTP routes, made from the list that serves them.

import { apiOwnRoutes, type Route, apiRunRoutes, apiSessionRoutes } from '@drover/server/api/routes';
import { code, page, table } from './markdown.ts';

const INTRO =
  '`drover serve` answers these routes. Send `Authorization: Bearer <token>` with each request; the token is in `server-token` of the state folder. `GET /v1/openapi.json` describes bodies, answers, events and refusals for programs. A refusal is `application/problem+json` with a sentence. Streams are server-sent events; reconnect with `Last-Event-ID`.';

export function httpPage(): string {
  // Only the descriptions are read here, so the routes need no server behind them.
  const nothing = {} as never;
  const groups: readonly (readonly [heading: string, routes: readonly Route[]])[] = [
    ['Sessions', apiSessionRoutes(nothing)],
    ['Runs', apiRunRoutes(nothing)],
    ['Server', apiOwnRoutes(nothing)],
  ];
  const parts = groups.flatMap(([heading, routes]) => [
    `## ${heading}`,
    table(['route', 'what it does', 'answers'], routes.map(rowOf)),
  ]);
  return page('HTTP routes', '`packages/server/src/api/routes.ts`', [INTRO, ...parts]);
}

function rowOf({ method, path, about, answer, needsToken }: Route): readonly string[] {
  const answers = { json: 'JSON', events: 'events', nothing: '204' }[answer.kind];
  return [code(`${method.toUpperCase()} ${path}`), about, needsToken ? answers : `${answers}, without a token`];
}

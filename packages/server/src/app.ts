// The server as a function from a request to its response, without a socket. `listen.ts` adds the socket's bounds.

import { Hono } from 'hono';
import { readHttpBody } from './http/body.ts';
import { httpRequestRefusedBecause } from './http/guard.ts';
import type { Host } from './host.ts';
import { openApiDocument } from './api/openapi.ts';
import { httpBug, httpNotFound, Refusal } from './http/problem.ts';
import { type Asked, apiOwnRoutes, type Reply, type Route, apiRunRoutes, apiSessionRoutes } from './api/routes.ts';
import { Runs } from './runs/runs.ts';
import { Sessions } from './sessions/sessions.ts';
import { EventStream } from './streams/event-stream.ts';
import { Feeds } from './streams/feeds.ts';
import type { Tickets } from './http/ticket.ts';

export type Bounds = {
  readonly bodyBytesMax: number;
  readonly streamBytesMax: number; // that wait for a reader
  readonly streamsMax: number;
  readonly commentMs: number; // a reader hears something at least so often
  readonly sessionIdleMs: number; // how long an idle session stays open
  readonly sessionsMax: number; // open at once
  readonly runsMax: number; // at work at once
};

const BOUNDS: Bounds = {
  bodyBytesMax: 8 * 1024 * 1024,
  streamBytesMax: 8 * 1024 * 1024,
  streamsMax: 1_536,
  commentMs: 15_000,
  sessionIdleMs: 30_000,
  sessionsMax: 64,
  runsMax: 4,
};

type PageFile = { readonly body: string | Uint8Array; readonly type: string };

export type AppOptions = {
  readonly token: string;
  /** Host names with port by which a request may address this server (see httpHostsAt). */
  readonly hosts: () => readonly string[];
  /** Extra origins that may send requests. */
  readonly origins?: () => readonly string[];
  readonly tickets?: Tickets;
  /** A file of the page, by its path. */
  readonly page?: (path: string) => PageFile | undefined;
  readonly bounds?: Partial<Bounds>;
};

export type App = {
  readonly fetch: (request: Request) => Promise<Response>;
  /** Resumes the sessions that the previous server left. */
  readonly start: () => Promise<void>;
  /** Interrupts running work and ends all streams. */
  readonly close: () => Promise<void>;
};

// Content security policy: the page may use its own files and its own server only, and no page may frame it. Text
// cannot become markup or script, even if the page's code has a bug.
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

export function createServerApp(host: Host, options: AppOptions): App {
  const bounds = { ...BOUNDS, ...options.bounds };
  const { diagnose, version } = host;
  const feeds = new Feeds({ streamBytesMax: bounds.streamBytesMax, commentMs: bounds.commentMs, diagnose });
  const sessions = new Sessions({ host, feeds, idleMs: bounds.sessionIdleMs, openMax: bounds.sessionsMax });
  const runs = new Runs({ host, feeds, runsMax: bounds.runsMax });

  let document: object | undefined;
  const routes: readonly Route[] = [
    ...apiSessionRoutes(sessions),
    ...apiRunRoutes(runs),
    ...apiOwnRoutes({
      version,
      token: options.token,
      tickets: options.tickets,
      info: async () => ({ version, root: host.root, ...(await host.models()) }),
      document: () => (document ??= openApiDocument(routes, version)),
    }),
  ];
  const served = serveRequest(routes, { ...options, bounds, feeds, diagnose });
  return {
    fetch: async (request) => hardenResponse(await served(request), request),
    start: () => sessions.start(),
    close: async () => {
      await Promise.all([sessions.close(), runs.close()]);
      feeds.end();
    },
  };
}

type Serving = Omit<AppOptions, 'bounds'> & {
  readonly bounds: Bounds;
  readonly feeds: Feeds;
  readonly diagnose: Host['diagnose'];
};

function serveRequest(routes: readonly Route[], serving: Serving): (request: Request) => Promise<Response> {
  const { page, diagnose } = serving;
  const app = new Hono();
  for (const route of routes) {
    app.on(route.method.toUpperCase(), route.path, async ({ req }) => {
      const refusal = httpRequestRefusedBecause(req.raw, serving, route.needsToken);
      if (refusal !== undefined) return refusal.response;
      const param = (name: string): string => req.param(name) ?? '';
      return answerRequest(route, await replyToRequest(route, { request: req.raw, param }, serving), req.raw);
    });
  }
  app.all('*', ({ req }) => {
    const refusal = httpRequestRefusedBecause(req.raw, serving, isApiRequest(req.raw));
    if (refusal !== undefined) return refusal.response;
    const isReading = req.method === 'GET' || req.method === 'HEAD';
    const file = isReading && !isApiRequest(req.raw) ? page?.(req.path) : undefined;
    return file === undefined ? httpNotFound('route').response : respondWithPage(file);
  });
  app.onError((error) => {
    diagnose('a request failed', { error: error.stack ?? String(error) }, 'error');
    return httpBug().response;
  });
  return async (request) => {
    // A HEAD request for a stream would open a stream without a reader.
    if (!['GET', 'POST', 'DELETE'].includes(request.method) && isApiRequest(request))
      return httpRequestRefusedBecause(request, serving, true)?.response ?? METHOD.response;
    return app.fetch(request);
  };
}

const METHOD = new Refusal(405, 'method.unfit', 'only GET, POST and DELETE are served here');

/** True for every path except the files of the page. */
function isApiRequest({ url }: Request): boolean {
  return /^\/(v1|healthz)(\/|$)/.test(new URL(url).pathname);
}

type Incoming = { readonly request: Request; readonly param: Asked<unknown>['param'] };

async function replyToRequest(route: Route, { request, param }: Incoming, { bounds, feeds }: Serving): Promise<Reply> {
  const after = lastEventIdOfRequest(request);
  if (after instanceof Refusal) return after;
  if (route.answer.kind === 'events' && feeds.size >= bounds.streamsMax)
    return new Refusal(503, 'streams.too_many', `there are ${bounds.streamsMax} streams already`);
  const numbers = queryNumbersOfRequest(route, request);
  if (numbers instanceof Refusal) return numbers;
  const asked = { param, after, signal: request.signal, number: (name: string) => numbers.get(name) };
  if (route.body === undefined) return route.reply({ ...asked, body: undefined });
  const read = await readHttpBody(request, route.body, bounds.bodyBytesMax);
  return read instanceof Refusal ? read : route.reply({ ...asked, body: read.body });
}

/** Parses the query numbers that the route declares. */
function queryNumbersOfRequest({ query = [] }: Route, { url }: Request): ReadonlyMap<string, number> | Refusal {
  const given = new URL(url).searchParams;
  const numbers = new Map<string, number>();
  for (const { name } of query) {
    const value = given.get(name);
    if (value === null) continue;
    if (!/^\d{1,9}$/.test(value))
      return new Refusal(400, 'query.malformed', `${name} must be a whole number, e.g. ${name}=20 (got "${value}")`);
    numbers.set(name, Number(value));
  }
  return numbers;
}

function lastEventIdOfRequest({ headers }: Request): number | Refusal {
  const given = headers.get('last-event-id') ?? '0';
  if (/^\d{1,15}$/.test(given)) return Number(given);
  return new Refusal(400, 'last_event_id.malformed', 'Last-Event-ID is the number of an event');
}

function answerRequest({ answer }: Route, reply: Reply, request: Request): Response {
  if (reply instanceof Refusal) return reply.response;
  if (reply instanceof EventStream) return streamToRequest(reply, request);
  if (reply === undefined) return new Response(null, { status: 204 });
  if (answer.kind !== 'json') throw new TypeError('this route answers no JSON');
  answer.schema.parse(reply);
  return Response.json(reply, { status: answer.status });
}

function streamToRequest(stream: EventStream, { signal }: Request): Response {
  // A client that left before the first read never cancels the body.
  if (signal.aborted) stream.leave();
  else signal.addEventListener('abort', () => stream.leave(), { once: true });
  return new Response(stream.body, {
    headers: {
      'content-type': 'text/event-stream',
      'x-accel-buffering': 'no',
      // Send chunks as they come; otherwise the first chunks are buffered to find the length.
      'transfer-encoding': 'chunked',
    },
  });
}

function respondWithPage({ body, type }: PageFile): Response {
  const bytes = typeof body === 'string' ? body : new Uint8Array(body);
  return new Response(bytes, {
    headers: {
      'content-type': type,
      'content-security-policy': PAGE_POLICY,
      // Links of a model: their hosts are not looked up before someone clicks.
      'x-dns-prefetch-control': 'off',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'cache-control': 'no-cache',
    },
  });
}

/** Sets the security headers of every response. */
function hardenResponse(response: Response, request: Request): Response {
  response.headers.set('x-content-type-options', 'nosniff');
  response.headers.set('referrer-policy', 'no-referrer');
  if (isApiRequest(request)) response.headers.set('cache-control', 'no-store');
  return response;
}

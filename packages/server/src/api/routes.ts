// The routes of the server as a list. Each declares its body, its answer and its handler; requests are served and the
// OpenAPI document is generated from the same list.

import type { z } from 'zod';
import type { ServerInfo } from '@drover/client/wire';
import { Refusal } from '../http/problem.ts';
import type { Runs } from '../runs/runs.ts';
import * as schemas from './schemas.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { EventStream } from '../streams/event-stream.ts';
import type { Tickets } from '../http/ticket.ts';

/** A checked request. */
export type Asked<Body> = {
  readonly body: Body;
  readonly param: (name: string) => string;
  /** A number from the query, as the route declares it. */
  readonly number: (name: string) => number | undefined;
  readonly after: number; // the last event it knows
  readonly signal: AbortSignal; // aborts when the client has gone
};

/** The reply: JSON, events, nothing (undefined), or a refusal. */
export type Reply = object | EventStream | Refusal | undefined;

export type Route = {
  readonly method: 'get' | 'post' | 'delete';
  readonly path: string;
  readonly name: string; // for programs: the operation's id
  readonly about: string;
  readonly body?: z.ZodType;
  /** Whole numbers that the query may hold. */
  readonly query?: readonly QueryNumber[];
  readonly answer: Answer;
  /** Besides those that every route has. */
  readonly refusals: readonly number[];
  readonly needsToken: boolean;
  readonly reply: (asked: Asked<unknown>) => Promise<Reply> | Reply;
};

export type QueryNumber = { readonly name: string; readonly about: string };

export type Answer =
  | { readonly kind: 'json'; readonly status: 200 | 201; readonly schema: z.ZodType }
  | { readonly kind: 'events' }
  | { readonly kind: 'nothing' };

type Declared<Body> = Omit<Route, 'body' | 'refusals' | 'needsToken' | 'reply'> & {
  readonly body?: z.ZodType<Body>;
  readonly refusals?: readonly number[];
  readonly needsToken?: boolean;
  readonly reply: (asked: Asked<Body>) => Promise<Reply> | Reply;
};

function apiRoute<Body>({ refusals = [], needsToken = true, reply, ...declared }: Declared<Body>): Route {
  return { ...declared, refusals, needsToken, reply: (asked) => reply(asked as Asked<Body>) };
}

const jsonAnswerOfRoute = (schema: z.ZodType, status: 200 | 201 = 200): Answer => ({ kind: 'json', status, schema });
const events: Answer = { kind: 'events' };
const nothing: Answer = { kind: 'nothing' };

export function apiSessionRoutes(sessions: Sessions): readonly Route[] {
  return [...apiSnapshotRoutes(sessions), ...apiTurnRoutes(sessions), ...apiSessionEventRoutes(sessions)];
}

function apiSnapshotRoutes(sessions: Sessions): readonly Route[] {
  return [
    apiRoute({
      method: 'post',
      path: '/v1/sessions',
      name: 'createSession',
      about: 'Begins a session',
      body: schemas.newSession,
      answer: jsonAnswerOfRoute(schemas.made, 201),
      reply: ({ body }) => sessions.create(body),
    }),
    apiRoute({
      method: 'get',
      path: '/v1/sessions',
      name: 'listSessions',
      about: 'All sessions, the newest first',
      answer: jsonAnswerOfRoute(schemas.sessionList),
      reply: () => ({ sessions: sessions.list() }),
    }),
    apiRoute({
      method: 'get',
      path: '/v1/sessions/:id',
      name: 'getSession',
      about: 'A session as it stands',
      query: [{ name: 'messages', about: 'At most this many of the last messages (default: all)' }],
      answer: jsonAnswerOfRoute(schemas.sessionSnapshot),
      refusals: [400, 404, 409],
      reply: ({ param, number }) => sessions.snapshot(param('id'), number('messages')),
    }),
  ];
}

function apiTurnRoutes(sessions: Sessions): readonly Route[] {
  return [
    apiRoute({
      method: 'post',
      path: '/v1/sessions/:id/execute',
      name: 'execute',
      about: 'Says something to a session; the answer is the events of the turn, to its end. Leaving leaves it running',
      body: schemas.executeRequest,
      answer: events,
      refusals: [404, 409],
      reply: ({ body, param }) => sessions.execute(param('id'), body),
    }),
    apiRoute({
      method: 'post',
      path: '/v1/sessions/:id/tool-results',
      name: 'deliverResults',
      about: 'Results of remote calls, in any order; when none is missing, the turn goes on',
      body: schemas.toolResults,
      answer: jsonAnswerOfRoute(schemas.resultsTaken),
      refusals: [404, 409],
      reply: ({ body, param }) => sessions.deliver(param('id'), body),
    }),
    apiRoute({
      method: 'post',
      path: '/v1/sessions/:id/cancel',
      name: 'cancelTurn',
      about: 'Ends the turn that is under way or waits; where there is none, nothing happens',
      body: schemas.nothing,
      answer: jsonAnswerOfRoute(schemas.standing),
      refusals: [404, 409],
      reply: ({ param }) => sessions.cancel(param('id')),
    }),
  ];
}

function apiSessionEventRoutes(sessions: Sessions): readonly Route[] {
  return [
    apiRoute({
      method: 'post',
      path: '/v1/sessions/:id/permissions/:requestId',
      name: 'answerQuestion',
      about: 'Answers a question of a session',
      body: schemas.permissionAnswer,
      answer: nothing,
      refusals: [404, 409],
      reply: ({ body, param }) => sessions.answer(param('id'), param('requestId'), body),
    }),
    apiRoute({
      method: 'get',
      path: '/v1/sessions/:id/events',
      name: 'sessionEvents',
      about: 'All kept events behind Last-Event-ID, and then what happens; `resync` where there was no such event',
      answer: events,
      refusals: [404],
      reply: ({ param, after }) => sessions.events(param('id'), after),
    }),
    apiRoute({
      method: 'delete',
      path: '/v1/sessions/:id',
      name: 'deleteSession',
      about: 'Removes a session and all that is kept of it',
      answer: nothing,
      refusals: [404, 409],
      reply: ({ param }) => sessions.remove(param('id')),
    }),
  ];
}

export function apiRunRoutes(runs: Runs): readonly Route[] {
  return [
    ...apiRunSnapshotRoutes(runs),
    ...apiRunControlRoutes(runs),
    ...apiTaskRoutes(runs),
    ...apiRoutesAfterRun(runs),
  ];
}

function apiRunSnapshotRoutes(runs: Runs): readonly Route[] {
  return [
    apiRoute({
      method: 'post',
      path: '/v1/runs',
      name: 'startRun',
      about: 'Starts a run',
      body: schemas.newRun,
      answer: jsonAnswerOfRoute(schemas.made, 201),
      reply: ({ body }) => runs.start(body),
    }),
    apiRoute({
      method: 'get',
      path: '/v1/runs',
      name: 'listRuns',
      about: 'All runs, the newest first',
      answer: jsonAnswerOfRoute(schemas.runList),
      reply: () => ({ runs: runs.list() }),
    }),
    apiRoute({
      method: 'get',
      path: '/v1/runs/:id',
      name: 'getRun',
      about: 'A run as it stands',
      answer: jsonAnswerOfRoute(schemas.runSnapshot),
      refusals: [404, 409],
      reply: ({ param }) => runs.snapshot(param('id')),
    }),
    apiRoute({
      method: 'get',
      path: '/v1/runs/:id/events',
      name: 'runEvents',
      about:
        'All kept events behind Last-Event-ID, and then what happens, to the end of the run; 204 where it has ended',
      answer: events,
      refusals: [404],
      reply: ({ param, after }) => runs.events(param('id'), after),
    }),
  ];
}

function apiRunControlRoutes(runs: Runs): readonly Route[] {
  return [
    apiRoute({
      method: 'post',
      path: '/v1/runs/:id/cancel',
      name: 'cancelRun',
      about: 'Interrupts a run of this server; it can be resumed later',
      body: schemas.nothing,
      answer: nothing,
      refusals: [404, 409],
      reply: ({ param }) => runs.cancel(param('id')),
    }),
    apiRoute({
      method: 'post',
      path: '/v1/runs/:id/permissions/:requestId',
      name: 'answerRunQuestion',
      about: 'Answers a question of a run of this server',
      body: schemas.permissionAnswer,
      answer: nothing,
      refusals: [404, 409],
      reply: ({ body, param }) => runs.answer(param('id'), param('requestId'), body),
    }),
    apiRoute({
      method: 'get',
      path: '/v1/runs/:id/tasks/:task/diff',
      name: 'taskDiff',
      about: 'What a task changed, as a patch',
      answer: jsonAnswerOfRoute(schemas.taskDiff),
      refusals: [404],
      reply: ({ param, signal }) => runs.diff(param('id'), param('task'), signal),
    }),
  ];
}

/** Single tasks of a run at work. */
function apiTaskRoutes(runs: Runs): readonly Route[] {
  return [
    apiRoute({
      method: 'post',
      path: '/v1/runs/:id/tasks/:task/messages',
      name: 'messageTask',
      about: 'Sends a message to the worker of a task, which reads it at its next step',
      body: schemas.taskText,
      answer: nothing,
      refusals: [404, 409],
      reply: ({ body: { text }, param }) =>
        runs.control(param('id'), (control) => control.message(param('task'), text)),
    }),
    apiRoute({
      method: 'post',
      path: '/v1/runs/:id/tasks/:task/cancel',
      name: 'cancelTask',
      about: 'Cancels one task of a run at work; tasks that depend on it are skipped',
      body: schemas.nothing,
      answer: nothing,
      refusals: [404, 409],
      reply: ({ param }) => runs.control(param('id'), (control) => control.cancel(param('task'))),
    }),
    apiRoute({
      method: 'post',
      path: '/v1/runs/:id/pause',
      name: 'pauseRun',
      about: 'Pauses a run at work, so that no attempt starts, or lets it go on',
      body: schemas.runPause,
      answer: nothing,
      refusals: [404, 409],
      reply: ({ body: { paused }, param }) => runs.control(param('id'), (control) => control.pause(paused)),
    }),
  ];
}

/** Before and after the work: approval of a plan; resume, retry, merge and the whole diff. */
function apiRoutesAfterRun(runs: Runs): readonly Route[] {
  return [
    apiRoute({
      method: 'post',
      path: '/v1/runs/:id/plan',
      name: 'answerPlan',
      about: 'Runs the plan that waits for approval, perhaps changed, stops it, or comments on it',
      body: schemas.planAnswer,
      answer: nothing,
      refusals: [404, 409],
      reply: ({ body, param }) => runs.answerPlan(param('id'), body),
    }),
    apiRoute({
      method: 'post',
      path: '/v1/runs/:id/resume',
      name: 'resumeRun',
      about: 'Resumes an interrupted run',
      body: schemas.runResume,
      answer: jsonAnswerOfRoute(schemas.made),
      refusals: [404, 409],
      reply: ({ body, param }) => runs.resume(param('id'), body),
    }),
    apiRoute({
      method: 'post',
      path: '/v1/runs/:id/retry',
      name: 'retryRun',
      about: 'Tries failed tasks of a run again, on top of everything that has landed; also while it is at work',
      body: schemas.runRetry,
      answer: jsonAnswerOfRoute(schemas.made),
      refusals: [404, 409],
      reply: ({ body: { tasks = [], ...rest }, param }) => runs.resume(param('id'), { ...rest, tasks }),
    }),
    apiRoute({
      method: 'post',
      path: '/v1/runs/:id/merge',
      name: 'mergeRun',
      about: 'Delivers what has landed in a run; an obstacle is 422, and nothing is changed',
      body: schemas.runMerge,
      answer: jsonAnswerOfRoute(schemas.runDelivered),
      refusals: [404, 409],
      reply: ({ body, param }) => runs.deliver(param('id'), body),
    }),
    apiRoute({
      method: 'get',
      path: '/v1/runs/:id/diff',
      name: 'runDiff',
      about: 'Everything that has landed in a run, as a patch',
      answer: jsonAnswerOfRoute(schemas.runDiff),
      refusals: [404],
      reply: ({ param }) => runs.wholeDiff(param('id')),
    }),
  ];
}

export type Own = {
  readonly version: string;
  readonly token: string;
  readonly tickets: Tickets | undefined;
  readonly document: () => object;
  readonly info: () => Promise<ServerInfo>;
};

export function apiOwnRoutes({ version, token, tickets, document, info }: Own): readonly Route[] {
  return [
    apiRoute({
      method: 'get',
      path: '/healthz',
      name: 'health',
      about: 'The server is there',
      answer: jsonAnswerOfRoute(schemas.health),
      reply: () => ({ status: 'ok', version }),
    }),
    apiRoute({
      method: 'get',
      path: '/v1/server',
      name: 'getServer',
      about: 'The folder that is served, the default model, and the models to choose from',
      answer: jsonAnswerOfRoute(schemas.serverInfo),
      reply: info,
    }),
    apiRoute({
      method: 'get',
      path: '/v1/openapi.json',
      name: 'openApi',
      about: 'This document',
      answer: jsonAnswerOfRoute(schemas.document),
      reply: () => document(),
    }),
    apiRoute({
      method: 'post',
      path: '/v1/ticket',
      name: 'redeemTicket',
      about: 'The token, for a ticket that is good once',
      body: schemas.ticketRequest,
      answer: jsonAnswerOfRoute(schemas.tokenGiven),
      needsToken: false,
      reply: ({ body }) =>
        tickets?.redeem(body.ticket) === true
          ? { token }
          : new Refusal(401, 'ticket.unfit', 'the ticket is wrong, used or too old'),
    }),
  ];
}

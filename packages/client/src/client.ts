// A client of `drover serve`: a typed method for each route, events as one unbroken stream, and sessions whose
// tools run on this side. It needs fetch and streams and nothing else, so it runs in Node and in browsers.
//
//   const client = new DroverClient({ baseUrl: 'http://127.0.0.1:4400', token });
//   const { runs } = await client.runs();
//   for await (const event of client.runEvents(runs[0].id)) show(event);
//
// A refusal is thrown as DroverProblem; a server that can't be reached as whatever fetch throws.

import type { Recorded } from '@drover/protocol/events';
import type { JsonObject } from '@drover/protocol/json';
import { type Asked, askServerForJson, askServerForStream, type Fetch, type Server } from './http.ts';
import { type ClientTools, declareClientTools, RemoteCalls } from './remote-calls.ts';
import { ClientSession } from './session.ts';
import { followServerEvents, type Follow, type FollowOptions } from './stream.ts';
import type {
  ExecuteRequest,
  Made,
  NewRun,
  NewSession,
  PermissionAnswer,
  RemoteResult,
  ResultsTaken,
  PlanAnswer,
  RunDelivered,
  RunDiff,
  RunMerge,
  RunResume,
  RunRetry,
  RunRow,
  RunSnapshot,
  ServerInfo,
  SessionRow,
  SessionSnapshot,
  TaskDiff,
} from './wire.ts';

export type ClientOptions = {
  readonly baseUrl: string; // where the server is, without /v1
  readonly token: string;
  readonly fetch?: Fetch;
};

/** A new session, or the existing one with `id`; its tools run here. */
export type SessionWanted = Omit<NewSession, 'tools'> & { readonly id?: string; readonly tools?: ClientTools };

export type SnapshotOptions = { readonly messages?: number };

export class DroverClient {
  readonly #server: Server;
  readonly #calls = new RemoteCalls();

  constructor(options: ClientOptions) {
    this.#server = serverOfClient(options);
  }

  // ── sessions ────────────────────────────────────────────────────────────────────────────────

  /** A session whose tools this process runs, ready to execute. */
  async session({ id, tools = {}, ...wanted }: SessionWanted = {}, signal?: AbortSignal): Promise<ClientSession> {
    const made = id ?? (await this.createSession({ ...wanted, tools: declareClientTools(tools) }, signal)).id;
    return new ClientSession({ client: this, id: made, tools, calls: this.#calls });
  }

  createSession(wanted: NewSession, signal?: AbortSignal): Promise<Made> {
    return this.#post<Made>('/v1/sessions', wanted, signal);
  }

  sessions(signal?: AbortSignal): Promise<{ readonly sessions: readonly SessionRow[] }> {
    return this.#get('/v1/sessions', signal);
  }

  /** Returns the state of a session; with `messages`, at most that many of the last ones. */
  snapshot(id: string, signal?: AbortSignal, { messages }: SnapshotOptions = {}): Promise<SessionSnapshot> {
    return this.#get(`${clientSessionPath(id)}${messages === undefined ? '' : `?messages=${messages}`}`, signal);
  }

  /** The events of one execution, until its turn ends or waits for a remote tool. */
  async *execute(id: string, wanted: ExecuteRequest, signal?: AbortSignal): AsyncGenerator<Recorded> {
    const { seq } = await this.snapshot(id, signal, { messages: 0 });
    const first = await this.openExecution(id, wanted, signal);
    for await (const event of this.follow(id, { after: seq, first, ...(signal && { signal }) })) {
      yield event;
      if (event.type === 'session_end') return;
    }
  }

  /** Begins an execution. Its events are those of the session: leaving this stream leaves it running. */
  openExecution(id: string, body: ExecuteRequest, signal?: AbortSignal): Promise<Response> {
    return askServerForStream(
      this.#server,
      { method: 'POST', path: `${clientSessionPath(id)}/execute`, body, signal },
      {},
    );
  }

  /** Every event of a session after `after`, until the signal aborts. */
  events(id: string, options: FollowOptions = {}): AsyncGenerator<Recorded> {
    return this.follow(id, options);
  }

  follow(id: string, options: Omit<Follow, 'connect'>): AsyncGenerator<Recorded> {
    return this.#follow(`${clientSessionPath(id)}/events`, options);
  }

  deliver(id: string, results: readonly RemoteResult[], signal?: AbortSignal): Promise<ResultsTaken> {
    return this.#post<ResultsTaken>(`${clientSessionPath(id)}/tool-results`, { results }, signal);
  }

  async cancel(id: string, signal?: AbortSignal): Promise<void> {
    await this.#post(`${clientSessionPath(id)}/cancel`, {}, signal);
  }

  async answer(id: string, requestId: string, answer: PermissionAnswer, signal?: AbortSignal): Promise<void> {
    await this.#post(`${clientSessionPath(id)}/permissions/${encodeURIComponent(requestId)}`, answer, signal);
  }

  async deleteSession(id: string, signal?: AbortSignal): Promise<void> {
    await this.#ask({ method: 'DELETE', path: clientSessionPath(id), signal });
  }

  // ── runs ────────────────────────────────────────────────────────────────────────────────────

  startRun(wanted: NewRun, signal?: AbortSignal): Promise<Made> {
    return this.#post<Made>('/v1/runs', wanted, signal);
  }

  runs(signal?: AbortSignal): Promise<{ readonly runs: readonly RunRow[] }> {
    return this.#get('/v1/runs', signal);
  }

  run(id: string, signal?: AbortSignal): Promise<RunSnapshot> {
    return this.#get(clientRunPath(id), signal);
  }

  /** Every event of a run after `after`, until the run has ended. */
  runEvents(id: string, options: FollowOptions = {}): AsyncGenerator<Recorded> {
    const isOver = async (signal: AbortSignal) => !(await this.run(id, signal)).live;
    return this.#follow(`${clientRunPath(id)}/events`, { ...options, isOver });
  }

  diff(id: string, task: string, signal?: AbortSignal): Promise<TaskDiff> {
    return this.#get(`${clientTaskPath(id, task)}/diff`, signal);
  }

  resumeRun(id: string, wanted: RunResume = {}, signal?: AbortSignal): Promise<Made> {
    return this.#post<Made>(`${clientRunPath(id)}/resume`, wanted, signal);
  }

  retryRun(id: string, wanted: RunRetry = {}, signal?: AbortSignal): Promise<Made> {
    return this.#post<Made>(`${clientRunPath(id)}/retry`, wanted, signal);
  }

  /** Sends a message to the worker of a task, which reads it at its next step. */
  async messageTask(id: string, { task, text }: { readonly task: string; readonly text: string }): Promise<void> {
    await this.#post(`${clientTaskPath(id, task)}/messages`, { text }, undefined);
  }

  async cancelTask(id: string, task: string): Promise<void> {
    await this.#post(`${clientTaskPath(id, task)}/cancel`, {}, undefined);
  }

  /** While paused, no attempt of a run starts. */
  async pauseRun(id: string, paused: boolean): Promise<void> {
    await this.#post(`${clientRunPath(id)}/pause`, { paused }, undefined);
  }

  mergeRun(id: string, wanted: RunMerge = {}, signal?: AbortSignal): Promise<RunDelivered> {
    return this.#post<RunDelivered>(`${clientRunPath(id)}/merge`, wanted, signal);
  }

  /** Returns all landed work as a patch. */
  runDiff(id: string, signal?: AbortSignal): Promise<RunDiff> {
    return this.#get(`${clientRunPath(id)}/diff`, signal);
  }

  /** Answers the plan that waits for approval. */
  async answerPlan(id: string, answer: PlanAnswer, signal?: AbortSignal): Promise<void> {
    await this.#post(`${clientRunPath(id)}/plan`, answer, signal);
  }

  async answerRun(id: string, requestId: string, answer: PermissionAnswer, signal?: AbortSignal): Promise<void> {
    await this.#post(`${clientRunPath(id)}/permissions/${encodeURIComponent(requestId)}`, answer, signal);
  }

  async cancelRun(id: string, signal?: AbortSignal): Promise<void> {
    await this.#post(`${clientRunPath(id)}/cancel`, {}, signal);
  }

  // ── the server ──────────────────────────────────────────────────────────────────────────────

  health(signal?: AbortSignal): Promise<JsonObject> {
    return this.#get('/healthz', signal);
  }

  /** Returns the served folder, the default model and the models to choose from. */
  server(signal?: AbortSignal): Promise<ServerInfo> {
    return this.#get('/v1/server', signal);
  }

  openApi(signal?: AbortSignal): Promise<JsonObject> {
    return this.#get('/v1/openapi.json', signal);
  }

  #follow(path: string, options: Omit<Follow, 'connect'>): AsyncGenerator<Recorded> {
    const connect = (after: number, signal: AbortSignal) =>
      askServerForStream(
        this.#server,
        { method: 'GET', path, signal },
        after > 0 ? { 'last-event-id': String(after) } : {},
      );
    return followServerEvents({ ...options, connect });
  }

  #get<Answer>(path: string, signal: AbortSignal | undefined): Promise<Answer> {
    return this.#ask<Answer>({ method: 'GET', path, signal });
  }

  #post<Answer>(path: string, body: object, signal: AbortSignal | undefined): Promise<Answer> {
    return this.#ask<Answer>({ method: 'POST', path, body, signal });
  }

  // Client and server share the types of wire.ts, and the server validates its answers.
  async #ask<Answer>(asked: Asked): Promise<Answer> {
    return (await askServerForJson(this.#server, asked)) as Answer;
  }
}

/** Exchanges the one-time ticket of an address for the token. */
export async function exchangeTicketForToken(ticket: string, options: Omit<ClientOptions, 'token'>): Promise<string> {
  const asked = { method: 'POST', path: '/v1/ticket', body: { ticket }, signal: undefined } as const;
  const { token } = (await askServerForJson(serverOfClient({ ...options, token: '' }), asked)) as {
    readonly token: string;
  };
  return token;
}

function serverOfClient({ baseUrl, token, fetch = globalThis.fetch }: ClientOptions): Server {
  return { baseUrl: baseUrl.replace(/\/+$/, ''), token, fetch };
}

function clientSessionPath(id: string): string {
  return `/v1/sessions/${encodeURIComponent(id)}`;
}

function clientTaskPath(run: string, task: string): string {
  return `${clientRunPath(run)}/tasks/${encodeURIComponent(task)}`;
}

function clientRunPath(id: string): string {
  return `/v1/runs/${encodeURIComponent(id)}`;
}

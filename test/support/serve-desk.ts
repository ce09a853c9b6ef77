// A server for tests: the real app, real sessions and journals; only the model is scripted. Its host is what
// `drover serve` would be, without settings and keys.

import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Recorded } from '@drover/core/events';
import { Session, type SessionOptions } from '@drover/core/agent/session';
import { UsageError } from '@drover/core/failure';
import { openSessionJournal, sessionFolder } from '@drover/core/journal/session-journal';
import { wireApis } from '@drover/core/model/catalog';
import { Questions } from '@drover/core/permission/questions';
import { builtinTools } from '@drover/core/tools/builtin';
import { remoteTool } from '@drover/core/tools/remote';
import type { Tool } from '@drover/core/tools/tool';
import type { Script } from '@drover/rehearsal/script';
import type { Rehearsal } from '@drover/rehearsal/server';
import { type App, type AppOptions, createApp } from '@drover/server/app';
import { hostsAt } from '@drover/server/guard';
import type { Host, HostedSession } from '@drover/server/host';
import { listen, type Listening, type SocketBounds } from '@drover/server/listen';
import { onTestFinished } from 'vitest';
import { patient, quickRetry, rehearsal, temporaryFolder } from './agent.ts';

export const TOKEN = 'a-token-that-only-tests-know-0123456789';

export type HostSettings = {
  readonly home: string;
  readonly root: string;
  readonly modelUrl: string; // of the scripted server
  readonly tools: readonly Tool[];
  /** Tools by these names are asked about. */
  readonly asks: readonly string[];
  readonly diagnose: Host['diagnose'];
};

export function hostOf(settings: HostSettings): Host {
  const { home, root, diagnose } = settings;
  return {
    home,
    root,
    version: '0.0.0-test',
    openSession: ({ id, begin }) => openSession(settings, id, begin),
    startRun: async () => {
      throw new UsageError('no runs in this test');
    },
    patchOf: async ({ repository, commit }) => {
      const { stdout } = await promisify(execFile)('git', ['-C', repository, 'show', commit]);
      return stdout;
    },
    diagnose,
  };
}

async function openSession(
  settings: HostSettings,
  id: string,
  begin: Parameters<Host['openSession']>[0]['begin'],
): Promise<HostedSession> {
  const { home, modelUrl, diagnose } = settings;
  const name = begin?.model ?? 'test/scripted';
  if (!name.startsWith('test/')) throw new UsageError(`there is no model ${name}`);
  const hooks = {
    onTrouble: () => undefined,
    onRecovery: () => undefined,
    diagnose: (text: string) => diagnose(text, {}),
  };
  const journal = await openSessionJournal(home, id, hooks);
  const questions = new Questions(() => undefined);
  try {
    const session = new Session({
      ...(await modelAt(modelUrl)),
      ...toolsOf(settings, begin?.tools ?? journal.past?.remoteTools ?? []),
      id,
      context: {
        cwd: begin?.cwd ?? journal.past?.cwd ?? '',
        env: { PATH: process.env['PATH'] ?? '' },
        outputFolder: join(sessionFolder(home, id), 'outputs'),
      },
      remoteTimeoutMs: begin?.remoteTimeoutMs ?? journal.past?.remoteTimeoutMs ?? 600_000,
      judge: async ({ name: tool }) => ({ effect: settings.asks.includes(tool) ? 'ask' : 'allow', why: 'a test' }),
      question: (question, signal) => questions.ask(question, signal),
      store: journal.store,
      ...(journal.past && { past: journal.past }),
    });
    return { session, questions, close: () => journal.close() };
  } catch (error) {
    await journal.close();
    throw error;
  }
}

async function modelAt(
  baseUrl: string,
): Promise<
  Pick<
    SessionOptions,
    'worker' | 'provider' | 'model' | 'contextTokens' | 'outputTokensMax' | 'limits' | 'retry' | 'pass'
  >
> {
  return {
    worker: 0,
    provider: await wireApis.anthropic({ id: 'test', apiKey: 'k', baseUrl, timeouts: patient }),
    model: 'scripted',
    contextTokens: 200_000,
    outputTokensMax: 8_192,
    limits: { textCallRetriesMax: 2, stepsMax: 50 },
    retry: quickRetry,
    pass: (event) => [event],
  };
}

function toolsOf(
  { tools }: HostSettings,
  remote: readonly Parameters<typeof remoteTool>[0][],
): Pick<SessionOptions, 'tools'> {
  return { tools: [...builtinTools, ...tools, ...remote.map(remoteTool)] };
}

export type ServeDesk = {
  readonly app: App;
  readonly home: string;
  readonly root: string;
  readonly model: Rehearsal;
  readonly diagnoses: readonly string[];
  /** Asks the app, with the token, as somebody on this machine would. */
  readonly ask: (method: string, path: string, body?: object, headers?: Record<string, string>) => Promise<Response>;
  /** The same app on a socket. */
  readonly listen: (bounds?: Partial<SocketBounds>) => Promise<Listening>;
};

export type DeskSettings = Partial<Omit<AppOptions, 'token' | 'hosts'>> & {
  readonly tools?: readonly Tool[];
  readonly asks?: readonly string[];
  readonly home?: string;
};

export async function serveDesk(script: Script, settings: DeskSettings = {}): Promise<ServeDesk> {
  const { tools = [], asks = [], home = await temporaryFolder(), ...options } = settings;
  const root = join(home, 'root');
  await mkdir(root, { recursive: true });
  const model = await rehearsal(script);
  const diagnoses: string[] = [];
  const diagnose = (message: string, fields: object): void => {
    diagnoses.push(`${message} ${JSON.stringify(fields)}`);
  };
  const host = hostOf({ home, root, modelUrl: model.baseUrlFor('anthropic'), tools, asks, diagnose });
  let hosts = ['127.0.0.1:4700'];
  const app = createApp(host, { ...options, token: TOKEN, hosts: () => hosts });
  onTestFinished(() => app.close());
  return {
    app,
    home,
    root,
    model,
    diagnoses,
    ask: (method, path, body, headers = {}) => app.fetch(requestOf(method, path, body, headers)),
    listen: async (bounds) => {
      const listening = await listen(app, { address: '127.0.0.1', port: 0 }, bounds);
      hosts = [...hosts, ...hostsAt('127.0.0.1', listening.port)];
      onTestFinished(() => listening.close());
      return listening;
    },
  };
}

function requestOf(method: string, path: string, body: object | undefined, headers: Record<string, string>): Request {
  return new Request(`http://127.0.0.1:4700${path}`, {
    method,
    headers: {
      host: '127.0.0.1:4700',
      authorization: `Bearer ${TOKEN}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

export type Told = { readonly id: number | undefined; readonly event: string; readonly data: Recorded };

/** The events of an answer as they come; leaving the loop leaves the stream. */
export async function* eventsOf(response: Response): AsyncGenerator<Told> {
  if (response.body === null) return;
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body) {
    text += decoder.decode(chunk, { stream: true });
    const frames = text.split('\n\n');
    text = frames.pop() ?? '';
    for (const frame of frames) {
      const told = toldIn(frame);
      if (told !== undefined) yield told;
    }
  }
}

function toldIn(frame: string): Told | undefined {
  const field = (name: string): string | undefined =>
    frame
      .split('\n')
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2);
  const data = field('data');
  if (data === undefined) return undefined;
  const id = field('id');
  return {
    id: id === undefined ? undefined : Number(id),
    event: field('event') ?? '',
    data: JSON.parse(data) as Recorded,
  };
}

/** All events up to the first of this type, or to the end of the stream. */
export async function eventsUntil(response: Response, last?: string): Promise<readonly Told[]> {
  const events: Told[] = [];
  for await (const told of eventsOf(response)) {
    events.push(told);
    if (told.event === last) break;
  }
  return events;
}

export async function made(desk: Pick<ServeDesk, 'ask'>, body: object = {}): Promise<string> {
  const response = await desk.ask('POST', '/v1/sessions', body);
  const { id } = (await response.json()) as { id: string };
  return id;
}

export async function said(desk: Pick<ServeDesk, 'ask'>, id: string, content: string): Promise<readonly Told[]> {
  return eventsUntil(await desk.ask('POST', `/v1/sessions/${id}/execute`, { content }));
}

export const isKept = ({ event }: Told): boolean => !event.endsWith('_delta') && event !== 'heartbeat';

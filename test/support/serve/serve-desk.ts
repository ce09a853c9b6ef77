// A server fixture: the real app on real sessions and journals; see serve-host.ts.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Recorded } from '@drover/protocol/events';
import type { Tool } from '@drover/core/tools/tool';
import type { Script } from '@drover/rehearsal/script';
import type { Rehearsal } from '@drover/rehearsal/server';
import { type App, type AppOptions, createServerApp } from '@drover/server/app';
import { httpHostsAt } from '@drover/server/http/guard';
import { listenForHttp, type Listening, type SocketBounds } from '@drover/server/http/listen';
import { onTestFinished } from 'vitest';
import { rehearsal, temporaryFolder } from '../agent.ts';
import { hostOf, type HostSettings, TOKEN } from './serve-host.ts';

export type ServeDesk = {
  readonly app: App;
  readonly home: string;
  readonly root: string;
  readonly model: Rehearsal;
  readonly diagnoses: readonly string[];
  /** Sends a request with the token, like a local client. */
  readonly ask: (method: string, path: string, body?: object, headers?: Record<string, string>) => Promise<Response>;
  /** The same app on a socket. */
  readonly listen: (bounds?: Partial<SocketBounds>) => Promise<Listening>;
};

export type DeskSettings = Partial<Omit<AppOptions, 'token' | 'hosts'>> & {
  readonly tools?: readonly Tool[];
  readonly asks?: readonly string[];
  readonly home?: string;
  /** Opening this model fails as with a bug. */
  readonly brokenSession?: string;
  readonly startRun?: HostSettings['startRun'];
};

export async function serveDesk(script: Script, settings: DeskSettings = {}): Promise<ServeDesk> {
  const { tools = [], asks = [], home = await temporaryFolder(), startRun, brokenSession, ...options } = settings;
  const root = join(home, 'root');
  await mkdir(root, { recursive: true });
  const model = await rehearsal(script);
  const diagnoses: string[] = [];
  const diagnose = (message: string, fields: object): void => {
    diagnoses.push(`${message} ${JSON.stringify(fields)}`);
  };
  const host = hostOf({
    home,
    root,
    modelUrl: model.baseUrlFor('anthropic'),
    tools,
    asks,
    diagnose,
    ...(startRun && { startRun }),
    ...(brokenSession !== undefined && { brokenSession }),
  });
  let hosts = ['127.0.0.1:4700'];
  const app = createServerApp(host, { ...options, token: TOKEN, hosts: () => hosts });
  onTestFinished(() => app.close());
  return {
    app,
    home,
    root,
    model,
    diagnoses,
    ask: (method, path, body, headers = {}) => app.fetch(requestOf(method, path, body, headers)),
    listen: async (bounds) => {
      const listening = await listenForHttp(app, { address: '127.0.0.1', port: 0 }, bounds);
      hosts = [...hosts, ...httpHostsAt('127.0.0.1', listening.port)];
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

/** The events of an answer as they arrive; leaving the loop closes the stream. */
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

// Small scripted servers on loopback, and a provider that talks to them.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ModelEvent, ModelRequest } from '@drover/protocol/model';
import type { Provider, StreamTimeouts } from '@drover/core/model/provider';
import { onTestFinished } from 'vitest';
import { providers, type Api } from '../recordings.ts';

export type Asked = { readonly request: IncomingMessage; readonly body: string };
export type Loopback = { readonly url: string; readonly asked: readonly Asked[] };

/** Answers every request after reading its body. Closed after the test. */
export async function loopback(
  answer: (response: ServerResponse, asked: Asked, count: number) => unknown,
): Promise<Loopback> {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const one = { request, body: Buffer.concat(chunks).toString('utf8') };
      asked.push(one);
      void answer(response, one, asked.length);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

/** The address of a port that refuses connections. */
export async function closedPort(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

export function sends(response: ServerResponse, body: string | Uint8Array, type = 'text/event-stream'): void {
  response.writeHead(200, { 'content-type': type }).end(body);
}

const LONG: StreamTimeouts = { headersMs: 10_000, firstByteMs: 10_000, silenceMs: 10_000, progressMs: 10_000 };

export function providerAt(url: string, api: Api = 'anthropic', timeouts: Partial<StreamTimeouts> = {}): Provider {
  return providers[api]({
    id: 'here',
    apiKey: 'secret-key',
    keyEnv: 'SOME_KEY',
    baseUrl: api === 'anthropic' ? url : `${url}/v1`,
    timeouts: { ...LONG, ...timeouts },
  });
}

export const REQUEST: ModelRequest = {
  model: 'model',
  system: '',
  tools: [],
  messages: [{ role: 'user', results: [], content: [{ type: 'text', text: 'go' }], cacheMark: false }],
  outputTokensMax: 100,
  cacheKey: '',
};

export const never = new AbortController().signal;

export function ask(provider: Provider, signal: AbortSignal = never): Promise<readonly ModelEvent[]> {
  return Array.fromAsync(provider.stream(REQUEST, signal));
}

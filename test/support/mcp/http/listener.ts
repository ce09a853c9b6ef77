// A web server on loopback that a test can stop and start again at the same port.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream as WebStream } from 'node:stream/web';
import { onTestFinished } from 'vitest';

export type Handler = (request: Request) => Promise<Response>;
export type RawHandler = (request: IncomingMessage, response: ServerResponse) => void;

export class Listener {
  #server: Server | undefined;
  #port = 0;
  readonly #answer: RawHandler;

  private constructor(answer: RawHandler) {
    this.#answer = answer;
  }

  static async open(answer: RawHandler): Promise<Listener> {
    const listener = new Listener(answer);
    await listener.start();
    onTestFinished(() => listener.stop());
    return listener;
  }

  get origin(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async start(): Promise<void> {
    this.#server = createServer(this.#answer).listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** Cuts all connections. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  }
}

/** Answers by a function of web requests. */
export function answering(handler: Handler, origin: () => string): RawHandler {
  return (request, response) => {
    const left = new AbortController();
    response.on('close', () => left.abort());
    void answered(handler, request, { origin: origin(), signal: left.signal })
      .then(async (given) => {
        response.writeHead(given.status, Object.fromEntries(given.headers));
        if (given.body === null) response.end();
        else await pipeline(Readable.fromWeb(given.body as WebStream), response);
      })
      // The client hung up, or the server was stopped.
      .catch(() => void response.destroy());
  };
}

type Around = { readonly origin: string; readonly signal: AbortSignal };

async function answered(handler: Handler, request: IncomingMessage, { origin, signal }: Around): Promise<Response> {
  const chunks = await request.toArray();
  const headers = Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)]);
  const body = chunks.length === 0 ? undefined : Buffer.concat(chunks as Buffer[]);
  const init = { method: request.method ?? 'GET', headers, signal, ...(body && { body }) };
  return handler(new Request(new URL(request.url ?? '/', origin), init));
}

// Refusals: why the proxy does not serve a request, written so that curl, npm, git and pip show it.
//
// The sentence is both the body and the reason phrase: several clients show only the status line.

import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

const SENTENCE_CHARS_MAX = 500;
const LINGER_MS = 1_000;

export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, sentence: string) {
    super(sentence.slice(0, SENTENCE_CHARS_MAX).replaceAll(/[^\u0020-\u007e]/g, '?'));
    this.status = status;
  }
}

/** Turns anything thrown while a request was served into a refusal. Unknown errors say nothing about themselves. */
export const toProxyRefusal = (error: unknown): Refusal =>
  error instanceof Refusal ? error : new Refusal(500, 'the proxy of the sandbox failed');

/** Answers a plain HTTP request and closes the connection. A response that has begun is cut off. */
export function answerProxyRefusal(response: ServerResponse, { status, message }: Refusal): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const sentence = `drover: ${message}`;
  response.writeHead(status, sentence, { ...proxyRefusalHeaders(sentence), connection: 'close' });
  response.end(`${sentence}\n`);
}

/** Answers on a socket that no HTTP parser serves (CONNECT, malformed requests), then closes it. */
export function writeProxyRefusal(socket: Duplex, { status, message }: Refusal): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const sentence = `drover: ${message}`;
  const headers = Object.entries({ ...proxyRefusalHeaders(sentence), connection: 'close' });
  const head = [`HTTP/1.1 ${status} ${sentence}`, ...headers.map(([name, value]) => `${name}: ${value}`)];
  const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once('close', () => clearTimeout(timer));
  socket.resume().end(`${head.join('\r\n')}\r\n\r\n${sentence}\n`);
}

const proxyRefusalHeaders = (sentence: string): Record<string, string> => ({
  'content-type': 'text/plain; charset=utf-8',
  'content-length': String(sentence.length + 1),
});

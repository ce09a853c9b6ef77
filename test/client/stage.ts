// A small HTTP server with scripted responses, cuts and delays.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Event, Owner, Place, Recorded } from '@drover/protocol/events';
import { isStreamedLiveOnly } from '@drover/client/stream';

export type Answer = { readonly status?: number; readonly body?: unknown } | Channel | 'hang up';
type Asked = {
  readonly params: readonly string[];
  readonly body: unknown;
  readonly after: number; // the Last-Event-ID header
  readonly token: string;
};
export type Routes = Record<string, (asked: Asked) => Answer | Promise<Answer>>;

/** Stored events and their listeners. */
export class Channel {
  readonly owner: Owner;
  readonly kept: Recorded[] = [];
  /** Bytes that each connection carries before it is cut; later connections are not cut. */
  cuts: number[] = [];
  pieceBytes = Number.POSITIVE_INFINITY; // bytes per write
  connections = 0;
  readonly afters: number[] = []; // the start position of each connection
  endsAfterRun = true;
  isForgetful = false; // starts at the first event and ignores Last-Event-ID
  readonly #open = new Set<ServerResponse>();
  #seq = 0;
  #writing = Promise.resolve();

  constructor(owner: Owner) {
    this.owner = owner;
  }

  emit(event: Event, place: Place & { readonly at?: string } = {}): Recorded {
    this.#seq += 1;
    const recorded = { v: 1, seq: this.#seq, at: new Date().toISOString(), ...this.owner, ...place, ...event } as const;
    if (!isStreamedLiveOnly(event.type)) this.kept.push(recorded);
    for (const response of this.#open) this.write(response, frame(recorded));
    if (event.type === 'run_end' && this.endsAfterRun) for (const response of this.#open) response.end();
    return recorded;
  }

  listen(response: ServerResponse, after: number): void {
    this.connections += 1;
    this.afters.push(after);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const text = this.kept.filter(({ seq }) => this.isForgetful || seq > after).map(frame);
    this.write(response, `retry: 5\n\n${text.join('')}`);
    if (this.kept.at(-1)?.type === 'run_end' && this.endsAfterRun) return void response.end();
    this.#open.add(response);
    response.on('close', () => this.#open.delete(response));
  }

  write(response: ServerResponse, text: string): void {
    let bytes = Buffer.from(text);
    const [left] = this.cuts;
    const isCut = left !== undefined && left <= bytes.length;
    if (isCut) {
      bytes = bytes.subarray(0, left);
      this.cuts.shift();
      this.#open.delete(response);
    } else if (left !== undefined) this.cuts[0] = left - bytes.length;
    if (this.pieceBytes >= bytes.length) response.write(bytes);
    else this.#writing = this.#writing.then(() => writePieces(response, bytes, this.pieceBytes));
    if (isCut) void this.#writing.then(() => setImmediate(() => response.destroy()));
  }

  /** Closes every connection, cleanly or with a reset. */
  drop(how: 'end' | 'destroy'): void {
    for (const response of this.#open) response[how]();
    this.#open.clear();
  }

  say(text: string): void {
    for (const response of this.#open) response.write(text);
  }
}

async function writePieces(response: ServerResponse, bytes: Buffer, size: number): Promise<void> {
  for (let at = 0; at < bytes.length && !response.destroyed; at += size) {
    response.write(bytes.subarray(at, at + size));
    if (at % 64 === 0) await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

export function frame(event: Recorded): string {
  return `id: ${event.seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

export class Stage implements AsyncDisposable {
  readonly #server: Server;
  readonly #routes: Routes;
  readonly asked: string[] = []; // method and path

  private constructor(routes: Routes) {
    this.#routes = routes;
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  static async open(routes: Routes): Promise<Stage> {
    const stage = new Stage(routes);
    await new Promise<void>((resolve) => stage.#server.listen(0, '127.0.0.1', resolve));
    return stage;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = request;
    this.asked.push(`${method} ${url}`);
    const text = await textOf(request);
    const found = this.#find(method, url);
    if (found === undefined) return problem(response, 404, 'not-found');
    const answer = await found.route({
      params: found.params,
      body: text === '' ? undefined : JSON.parse(text),
      after: Number(headers['last-event-id'] ?? 0),
      token: (headers.authorization ?? '').replace('Bearer ', ''),
    });
    if (answer === 'hang up') return void response.destroy();
    if (answer instanceof Channel) return answer.listen(response, Number(headers['last-event-id'] ?? 0));
    const { status = 200, body } = answer;
    response.writeHead(status, { 'content-type': status < 400 ? 'application/json' : 'application/problem+json' });
    response.end(body === undefined ? '' : JSON.stringify(body));
  }

  #find(method: string, url: string) {
    const parts = url.split('/');
    for (const [key, route] of Object.entries(this.#routes)) {
      const [wanted, path = ''] = key.split(' ');
      const pattern = path.split('/');
      if (wanted !== method || pattern.length !== parts.length) continue;
      if (pattern.every((part, at) => part.startsWith(':') || part === parts[at]))
        return { route, params: parts.filter((_, at) => pattern[at]?.startsWith(':')).map(decodeURIComponent) };
    }
    return undefined;
  }
}

function problem(response: ServerResponse, status: number, type: string): void {
  response.writeHead(status, { 'content-type': 'application/problem+json' });
  response.end(JSON.stringify({ type, title: type, status }));
}

async function textOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString('utf8');
}

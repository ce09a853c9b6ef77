// A real MCP server over streamable HTTP, made with the protocol's own server library. `sessions` is the previous
// revision with a session per client; `stateless` is the current one.

import { randomUUID } from 'node:crypto';
import { createMcpHandler, Server, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server';
import type { JsonObject } from '@drover/protocol/json';
import { answering, type Handler, Listener } from './listener.ts';

type Context = {
  readonly mcpReq: {
    readonly signal: AbortSignal;
    readonly _meta?: { readonly progressToken?: string | number };
    readonly notify: (notice: { readonly method: string; readonly params: object }) => Promise<void>;
    readonly elicitInput: (params: object) => Promise<JsonObject>;
  };
};
type Tool = (args: JsonObject, context: Context) => Promise<object>;
type Seen = { readonly method: string; readonly path: string; readonly headers: Headers; readonly tool?: string };

export type SdkServer = {
  readonly listener: Listener;
  readonly url: string;
  /** Every request, in the order of their arrival. */
  readonly seen: readonly Seen[];
  /** How often each tool ran. */
  readonly ran: Readonly<Record<string, number>>;
  /** Calls that the client cancelled. */
  readonly cancelled: readonly string[];
  readonly sessions: ReadonlyMap<string, unknown>;
  /** Forgets all sessions, as a restart does. */
  readonly forget: () => void;
};

type Options = {
  readonly kind?: 'sessions' | 'stateless';
  readonly tools?: Readonly<Record<string, Tool>>;
  /** Asked before each request; a response ends it. */
  readonly before?: (request: Request) => Promise<Response | undefined>;
};

export async function sdkServer({ kind = 'sessions', tools = {}, before }: Options = {}): Promise<SdkServer> {
  const seen: Seen[] = [];
  const ran: Record<string, number> = {};
  const cancelled: string[] = [];
  const all: Readonly<Record<string, Tool>> = { ...TOOLS, ...tools };
  const make = () => {
    const server = new Server({ name: 'sdk', version: '1' }, { capabilities: { tools: {} } });
    const listed = Object.keys(all).map((name) => ({ name, inputSchema: { type: 'object' as const } }));
    server.setRequestHandler('tools/list', () => ({ tools: listed }));
    server.setRequestHandler('tools/call', async ({ params }, context) => {
      ran[params.name] = (ran[params.name] ?? 0) + 1;
      context.mcpReq.signal.addEventListener('abort', () => cancelled.push(params.name));
      const done = await all[params.name]?.((params.arguments ?? {}) as JsonObject, context as unknown as Context);
      return (done ?? { content: [], isError: true }) as { content: [] };
    });
    return server;
  };
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const serve: Handler =
    kind === 'stateless' ? async (request) => stateless.fetch(request) : withSessions(sessions, make);
  const stateless = createMcpHandler(make, { legacy: 'reject' });
  const handler: Handler = async (request) => {
    const { method, headers, url } = request;
    const body =
      method === 'POST'
        ? ((await request
            .clone()
            .json()
            .catch(() => ({}))) as JsonObject)
        : {};
    const { name } = (body['params'] ?? {}) as { name?: string };
    const tool = body['method'] === 'tools/call' ? name : undefined;
    seen.push({ method, path: new URL(url).pathname, headers, ...(tool !== undefined && { tool }) });
    return (await before?.(request)) ?? serve(request);
  };
  const listener: Listener = await Listener.open(answering(handler, () => listener.origin));
  const url = `${listener.origin}/mcp`;
  return { listener, url, seen, ran, cancelled, sessions, forget: () => sessions.clear() };
}

function withSessions(
  sessions: Map<string, WebStandardStreamableHTTPServerTransport>,
  make: () => Server,
): (request: Request) => Promise<Response> {
  return async (request) => {
    const id = request.headers.get('mcp-session-id');
    const known = id === null ? undefined : sessions.get(id);
    if (known !== undefined) return known.handleRequest(request);
    if (id !== null) return Response.json({ error: 'session not found' }, { status: 404 });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (session) => void sessions.set(session, transport),
      onsessionclosed: (session) => void sessions.delete(session),
    });
    await make().connect(transport);
    return transport.handleRequest(request);
  };
}

export const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const text = (written: string) => ({ content: [{ type: 'text', text: written }] });

const TOOLS: Readonly<Record<string, Tool>> = {
  echo: async ({ message }) => text(`Echo: ${message as string}`),
  picture: async () => ({ content: [{ type: 'image', mimeType: 'image/png', data: PIXEL }] }),
  fails: async () => ({ ...text('no such table'), isError: true }),
  slow: async (_, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken ?? 0;
    for (const progress of [1, 2]) {
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 2 } });
      // drover passes on at most twenty notices a second.
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
    return text('slow is done');
  },
  silent: async (_, { mcpReq }) =>
    new Promise((_resolve, reject) => mcpReq.signal.addEventListener('abort', () => reject(new Error('cancelled')))),
};

// A connection to one server by the client library. This folder is the only home of the library, which is loaded when
// the first server is.
//
// Guarantees
//   1. The library validates nothing that a server says: lists and results come from the cleaned wire.
//   2. Time limits are ours. The library reports a cancel and a timeout alike, and counts the time a user thinks.

import type {
  Progress,
  CallToolResult,
  Client,
  ElicitRequest,
  ElicitResult,
  PriorDiscovery,
  Transport,
} from '@modelcontextprotocol/client';
import type { JsonObject } from '@drover/protocol/json';
import type { ToolOutput } from '@drover/core/tools/tool';
import { CleanedWire } from '../hostile/cleaned-wire.ts';
import type { Listed } from '../hostile/listed-tool.ts';
import type { Wire } from '../wire.ts';

// The library's timers are off: this is the longest that Node knows.
const NEVER_MS = 2 ** 31 - 1;
const PROBE_MS = 5_000;
const PAGES_MAX = 64;

/** How a server was found to speak; kept, so that it need not be asked again. */
export type Prior = PriorDiscovery;

export type Asked = { readonly message: string; readonly schema: JsonObject };
export type Answered = ElicitResult;

export type ConnectOptions = {
  readonly version: string; // of drover
  readonly prior: Prior | undefined;
  readonly onAsked: (asked: Asked, signal: AbortSignal) => Promise<Answered>;
  /** Called for every notice of the server. */
  readonly onToolsChanged: () => void;
};

type CallOptions = {
  readonly onProgress: (progress: Progress) => void;
  readonly meta: JsonObject | undefined;
};

export type Connection = {
  readonly prior: Prior;
  readonly protocol: string;
  /** As the server calls itself. */
  readonly server: string;
  /** Whether it tells when its tools change. */
  readonly announces: boolean;
  readonly listTools: (signal: AbortSignal) => Promise<Listed>;
  readonly callTool: (
    call: { readonly tool: string; readonly args: JsonObject },
    options: CallOptions,
    signal: AbortSignal,
  ) => Promise<ToolOutput>;
  readonly close: () => Promise<void>;
};

/** Connects over a wire. Closes it if that fails. */
export async function connectSdkClient(inner: Wire, options: ConnectOptions, signal: AbortSignal): Promise<Connection> {
  const { Client } = await import('@modelcontextprotocol/client');
  const wire = new CleanedWire(inner);
  const client = new Client(
    { name: 'drover', version: options.version },
    {
      // The library refuses questions that only an address answers, since they are not named here.
      capabilities: { elicitation: { form: {} } },
      versionNegotiation: { mode: 'auto', probe: { timeoutMs: PROBE_MS } },
      jsonSchemaValidator: {
        getValidator: () => (input) => ({ valid: true, data: input as never, errorMessage: undefined }),
      },
      listMaxPages: PAGES_MAX,
      listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => options.onToolsChanged() } },
    },
  );
  client['setRequestHandler']('elicitation/create', (request, context) =>
    options.onAsked(askedBySdkRequest(request), context.mcpReq.signal),
  );
  const { prior } = options;
  try {
    await abortableSdkCall(
      client.connect(wire as unknown as Transport, { signal, timeout: NEVER_MS, ...(prior && { prior }) }),
      signal,
    );
  } catch (error) {
    await inner.close();
    throw error;
  }
  return connectionOfSdkClient(client, wire);
}

function connectionOfSdkClient(client: Client, wire: CleanedWire): Connection {
  const discover = client.getDiscoverResult();
  const { name = '', version = '' } = client.getServerVersion() ?? {};
  return {
    prior: discover === undefined ? { kind: 'legacy' } : { kind: 'modern', discover },
    protocol: client.getNegotiatedProtocolVersion() ?? 'unknown',
    announces: client.getServerCapabilities()?.tools?.listChanged === true,
    server: `${name} ${version}`.trim(),
    listTools: async (signal) => {
      wire.lists.length = 0;
      await abortableSdkCall(client.listTools(undefined, { signal, timeout: NEVER_MS, cacheMode: 'bypass' }), signal);
      return { tools: wire.lists.flatMap(({ tools }) => tools), leftOut: wire.lists.flatMap(({ leftOut }) => leftOut) };
    },
    callTool: async ({ tool, args }, { onProgress, meta }, signal) => {
      const params = { name: tool, arguments: args, ...(meta && { _meta: meta }) };
      const sent = client.callTool(params, { signal, timeout: NEVER_MS, onprogress: onProgress });
      const result: CallToolResult = await abortableSdkCall(sent, signal);
      const output = wire.takeOutput(result as JsonObject);
      if (output === undefined) throw new Error('the result of the call is gone');
      return output;
    },
    close: () => client.close(),
  };
}

function askedBySdkRequest({ params }: ElicitRequest): Asked {
  const schema = 'requestedSchema' in params ? (params.requestedSchema as JsonObject) : {};
  return { message: params.message, schema };
}

/** Rejects when the signal aborts, even if the work continues. */
async function abortableSdkCall<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

// Opens the MCP servers of a run or a session.
//
// Guarantees
//   1. The client library is loaded only if there is a server.
//   2. The tools of a run are listed once and kept in its folder: a resumed run declares the same ones.
//   3. Servers that an earlier drover left behind end here, also if this start has none.

import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { CHARS_PER_TOKEN_DEFAULT } from '@drover/core/conversation/conversation';
import type { Diagnose } from '@drover/core/diagnosis';
import type { Broker } from '@drover/mcp/broker';
import type { ServedTool } from '@drover/core/tools/served/served';
import { NO_SERVERS, type ToolServers } from '@drover/core/tools/served/tool-servers';
import type { Io } from '../io.ts';
import type { Settings } from '../start/settings.ts';
import { endLeftMcpServers, Marks } from './marks.ts';
import type { ServerGround } from './server-box.ts';
import { openServerVerdicts } from './verdicts.ts';
import { findMcpServers, type ServerSources } from './server-list.ts';

// Deferral begins where definitions take more than this share of the context.
const CONTEXT_SHARE = 0.1;

export type ServersWish = Pick<ServerGround, 'containment' | 'rules'> & {
  readonly settings: Settings;
  /** The folder that is worked on. */
  readonly top: string;
  readonly sources: ServerSources;
  readonly contextTokens: number;
  /** The file that keeps the list of tools; undefined if it need not outlive the process. */
  readonly frozenAt: string | undefined;
  /** The trace that calls belong to. */
  readonly traceparent?: string | undefined;
  /** The servers that this process has already; absent where it has one run or session. */
  readonly hub?: ServerHub | undefined;
};

/** The servers of a process that serves several runs and sessions. */
export type ServerHub = { readonly broker: () => Promise<Broker>; readonly close: () => Promise<void> };

// A client that returns within this time finds its servers as they were.
const IDLE_MS = 60_000;

/** The broker is made when the first server is needed. */
export function openServerHub(home: string, diagnose: Diagnose): ServerHub {
  let broker: Promise<Broker> | undefined;
  return {
    broker: () => (broker ??= newBroker(home, { diagnose, idleMs: IDLE_MS })),
    close: async () => (await broker)?.close(),
  };
}

async function newBroker(
  home: string,
  { diagnose, idleMs }: { readonly diagnose: Diagnose; readonly idleMs: number },
): Promise<Broker> {
  const { Broker } = await import('@drover/mcp/broker');
  return new Broker({
    version: '0.1.0',
    priorsOf: openServerVerdicts(home),
    onDiagnostic: (message, facts) => diagnose(message, facts, 'warn'),
    idleMs,
  });
}

export type OpenServers = ToolServers & { readonly close: () => Promise<void> };

/** Throws UsageError for a malformed file, and for a required server that does not start. */
export async function openMcpServers(
  wish: ServersWish,
  { io, diagnose }: { io: Io; diagnose: Diagnose },
): Promise<OpenServers> {
  const { settings, frozenAt } = wish;
  const ended = endLeftMcpServers(settings.home);
  if (ended > 0) diagnose('ended MCP servers of an earlier drover', { processes: ended }, 'warn');
  const { servers, warnings } = await findMcpServers(wish, io);
  const frozen = frozenAt === undefined ? undefined : readFrozenTools(frozenAt);
  if (servers.length === 0 && (frozen ?? []).length === 0)
    return { ...NO_SERVERS, warnings, close: async () => undefined };
  const { openMcpServerWire } = await import('./server-box.ts');
  const ground = { ...wish, home: settings.home, marks: Marks.of(settings.home), io };
  const broker = await (wish.hub?.broker() ?? newBroker(settings.home, { diagnose, idleMs: 0 }));
  const charsMax = wish.contextTokens * CONTEXT_SHARE * (settings.charsPerToken ?? CHARS_PER_TOKEN_DEFAULT);
  const opened = await broker.open({
    servers: servers.map(({ spec }) => spec),
    cwd: wish.top,
    openWire: (spec, place) => openMcpServerWire(spec, place, ground),
    rights: JSON.stringify(wish.rules),
    traceparent: wish.traceparent,
    charsMax,
    frozen,
  });
  const fatal = opened.problems.filter(({ isFatal }) => isFatal);
  if (fatal.length > 0) {
    await opened.close();
    throw new UsageError(fatal.map(({ message }) => message).join('\n'));
  }
  if (frozenAt !== undefined && frozen === undefined) freezeServedTools(frozenAt, opened.tools);
  const { tools, lineFor, problems } = opened;
  return {
    tools,
    lineFor,
    warnings: [...warnings, ...problems.map(({ message }) => message)],
    close: opened.close,
  };
}

/** Written before the run plans; a file that was cut off is as good as none. */
function freezeServedTools(path: string, tools: readonly ServedTool[]): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.new`, JSON.stringify(tools));
  renameSync(`${path}.new`, path);
}

function readFrozenTools(path: string): readonly ServedTool[] | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as readonly ServedTool[];
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

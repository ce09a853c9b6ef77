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
};

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
  const { Broker } = await import('@drover/mcp/broker');
  const { openMcpServerWire } = await import('./server-box.ts');
  const ground = { ...wish, home: settings.home, marks: new Marks(settings.home), io };
  const broker = new Broker({
    version: '0.1.0',
    openWire: (spec, place) => openMcpServerWire(spec, place, ground),
    priorsOf: openServerVerdicts(settings.home),
    onDiagnostic: (message, facts) => diagnose(message, facts, 'warn'),
  });
  const charsMax = wish.contextTokens * CONTEXT_SHARE * (settings.charsPerToken ?? CHARS_PER_TOKEN_DEFAULT);
  const opened = await broker.open({
    servers: servers.map(({ spec }) => spec),
    cwd: wish.top,
    charsMax,
    frozen,
  });
  const fatal = opened.problems.filter(({ isFatal }) => isFatal);
  if (fatal.length > 0) {
    await broker.close();
    throw new UsageError(fatal.map(({ message }) => message).join('\n'));
  }
  if (frozenAt !== undefined && frozen === undefined) freezeServedTools(frozenAt, opened.tools);
  const { tools, lineFor, problems } = opened;
  return {
    tools,
    lineFor,
    warnings: [...warnings, ...problems.map(({ message }) => message)],
    close: () => broker.close(),
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

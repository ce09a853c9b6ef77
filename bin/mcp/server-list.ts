// The MCP servers of this start: those of the user's config, of the project's approved .mcp.json, and of --mcp files.
//
// Guarantees
//   1. A .mcp.json that is not approved is ignored; open-project.ts tells the user.
//   2. A server of --mcp replaces one of the same name in the user's config, and that one of the project.
//   3. A malformed file is a UsageError with file and line, before anything is started.

import { dirname, resolve } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { requireOwnFile } from '@drover/core/files/own-file';
import type { OauthSettings, ServerSpec } from '@drover/mcp/server-spec';
import type { Project } from '@drover/trust/project';
import type { McpEntry } from '../files/mcp-file.ts';
import type { Io } from '../io.ts';
import { decodeUtf8, type Settings } from '../start/settings.ts';
import { expandMcpEntry } from './expand.ts';

const TIMEOUT_MS_DEFAULT = 60_000;
const START_MS_DEFAULT = 30_000;

type ServerSource = 'config' | 'project' | 'flag';

type ListedServer = { readonly spec: ServerSpec; readonly source: ServerSource };

export type ServerList = {
  readonly servers: readonly ListedServer[];
  /** For the user: what was left out, and why. */
  readonly warnings: readonly string[];
};

/** Where servers are named besides the config. */
export type ServerSources = {
  readonly project: Pick<Project, 'trusted'>;
  /** Files of --mcp. */
  readonly files: readonly string[];
};

type ServerWish = { readonly settings: Settings; readonly top: string; readonly sources: ServerSources };

type Found = {
  readonly name: string;
  readonly entry: McpEntry;
  readonly place: string;
  readonly base: string;
  readonly source: ServerSource;
};

export async function findMcpServers({ settings, top, sources }: ServerWish, io: Io): Promise<ServerList> {
  const warnings: string[] = [];
  // The nearest file comes first, and the last one wins below.
  const files = sources.project.trusted('mcp').toReversed();
  const project = await Promise.all(files.map(({ text, path }) => parseServersFile(text, path, 'project')));
  const flagged = await Promise.all(sources.files.map((file) => readServersFile(resolve(io.cwd, file))));
  const own = [...settings.mcp].map(([name, { entry, place }]): Found => ({
    name,
    entry,
    place,
    base: top,
    source: 'config',
  }));
  const byName = new Map([...project.flat(), ...own, ...flagged.flat()].map((each) => [each.name, each]));
  const servers: ListedServer[] = [];
  for (const found of byName.values()) {
    const { entry, missing } = expandMcpEntry(found.entry, io.env);
    if (missing.length === 0) servers.push({ spec: mcpServerSpec({ ...found, entry }), source: found.source });
    else {
      const message = `the MCP server ${found.name} (${found.place}) needs ${missing.join(', ')}, which is not set`;
      if (entry.required === true) throw new UsageError(`${message}; set it, or remove required from the server`);
      warnings.push(`${message}, so it is left out`);
    }
  }
  return { servers, warnings };
}

async function readServersFile(path: string): Promise<readonly Found[]> {
  const bytes = await requireOwnFile({ path }, ({ problem, fix }) => `--mcp: ${path} ${problem}; ${fix}`);
  const written = decodeUtf8(bytes);
  if (written === undefined) throw new UsageError(`${path} is not UTF-8 text; save it as UTF-8`);
  return parseServersFile(written, path, 'flag');
}

async function parseServersFile(written: string, path: string, source: ServerSource): Promise<readonly Found[]> {
  const { parseMcpFile } = await import('../files/mcp-file.ts');
  const { value, place } = parseMcpFile(written, path);
  return Object.entries(value.mcpServers).map(([name, entry]) => ({
    name,
    entry,
    place: place(['mcpServers', name]),
    base: dirname(path),
    source,
  }));
}

function mcpServerSpec({ name, entry, place, base }: Found): ServerSpec {
  const { idempotent = [] } = entry;
  return {
    name,
    place,
    scope: entry.scope ?? 'shared',
    isDeferred: entry.defer ?? false,
    isRequired: entry.required ?? false,
    idempotent: typeof idempotent === 'boolean' ? (idempotent ? 'all' : []) : idempotent,
    timeoutMs: entry.timeout ?? TIMEOUT_MS_DEFAULT,
    startMs: entry.startTimeout ?? START_MS_DEFAULT,
    reach:
      entry.url === undefined
        ? {
            type: 'stdio',
            command: entry.command ?? '',
            args: entry.args ?? [],
            env: entry.env ?? {},
            cwd: entry.cwd,
            net: entry.net ?? [],
            readable: (entry.readable ?? []).map((path) => resolve(base, path)),
            writable: (entry.writable ?? []).map((path) => resolve(base, path)),
          }
        : {
            type: 'http',
            url: entry.url,
            headers: entry.headers ?? {},
            ...(entry.oauth && { oauth: oauthSettings(entry.oauth) }),
          },
  };
}

function oauthSettings({ clientId, clientSecret, scope, callbackPort }: NonNullable<McpEntry['oauth']>): OauthSettings {
  return {
    ...(clientId !== undefined && { clientId }),
    ...(clientSecret !== undefined && { clientSecret }),
    ...(scope !== undefined && { scope }),
    ...(callbackPort !== undefined && { callbackPort }),
  };
}

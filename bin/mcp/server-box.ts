// The wire to an MCP server of this start: a program in its sandbox, or a URL.

import { mkdirSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { basename, join, resolve } from 'node:path';
import { newId } from '@drover/core/ids';
import type { Rule } from '@drover/core/permission/rules';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import type { StartPlace } from '@drover/mcp/broker';
import type { OpenWire } from '@drover/mcp/instance';
import { startMcpServerProcess } from '@drover/mcp/process/server-process';
import { StdioWire } from '@drover/mcp/process/stdio-wire';
import type { HttpReach, ServerSpec, StdioReach } from '@drover/mcp/server-spec';
import type { Wire } from '@drover/mcp/wire';
import type { Contained } from '@drover/coordinator/slots/containment';
import { isAddress } from '../start/quantities.ts';
import type { Io } from '../io.ts';
import type { Containment } from '../sandbox/containment.ts';
import { openLoginStore } from './login/login-store.ts';
import type { Marks } from './marks.ts';

export type ServerGround = {
  readonly home: string;
  readonly containment: Containment;
  readonly rules: readonly Rule[];
  readonly marks: Marks;
};

/** Throws an error whose message is for the user. */
export async function openMcpServerWire(
  spec: ServerSpec,
  place: StartPlace,
  ground: ServerGround & { readonly io: Io },
): Promise<OpenWire> {
  const { reach } = spec;
  if (reach.type === 'http') return openMcpHttpWire(reach, { server: spec.name, home: ground.home });
  const cwd = resolve(place.cwd, reach.cwd ?? '.');
  const contained = await containMcpServer(spec, reach, { place, ground });
  const mark = ground.marks.add(newId('mcp'));
  try {
    const env = { ...childProcessEnvironment(ground.io.env), ...reach.env };
    const server = await startMcpServerProcess({
      command: reach.command,
      args: reach.args,
      env,
      cwd,
      sandbox: contained?.policy,
      mark,
    });
    const wire = new StdioWire(server);
    void server.gone.then(async () => {
      await server.end();
      ground.marks.remove(mark);
      await contained?.close();
    });
    const hint = contained === undefined ? '' : serverDownloadHint(reach);
    return { wire: wire as Wire, why: () => wire.why && `${wire.why}${hint}`, complaints: () => wire.complaints };
  } catch (error) {
    ground.marks.remove(mark);
    await contained?.close();
    const why = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new Error(`${reach.command} could not be started (${why})`, { cause: error });
  }
}

async function openMcpHttpWire(
  reach: HttpReach,
  { server, home }: { readonly server: string; readonly home: string },
): Promise<OpenWire> {
  if (!isAddress(reach.url)) throw new Error(`${reach.url} is not an http or https address`);
  const { openSdkHttpWire: openHttpWire } = await import('@drover/mcp/sdk/http-wire');
  const wire = await openHttpWire(reach, { server, store: openLoginStore(home, { server, url: reach.url }) });
  return { wire, why: () => wire.why, complaints: () => '' };
}

type Start = { readonly place: StartPlace; readonly ground: ServerGround };

/** Undefined if there is no sandbox. */
async function containMcpServer(
  spec: ServerSpec,
  { net, readable, writable }: StdioReach,
  { place: { cwd, agent }, ground: { containment, rules, home } }: Start,
): Promise<Contained | undefined> {
  const rights = { net, readable, writable };
  if (agent?.sandbox !== undefined) return containment.taskServer?.(agent.sandbox, rights);
  const folder = join(home, 'mcp', 'servers', `${spec.name}-${hashServerSpec([spec.reach, cwd])}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return containment.server?.({ ...rights, rules, folder, project: cwd });
}

function hashServerSpec(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 12);
}

const DOWNLOADERS = new Set(['npx', 'pnpm', 'pnpx', 'bunx', 'uvx', 'uv', 'pipx', 'docker']);

function serverDownloadHint({ command, net }: StdioReach): string {
  if (!DOWNLOADERS.has(basename(command)) || net.length > 0) return '';
  return `; ${basename(command)} may have wanted to download it: name the hosts under net of the server, or install the server and name its program`;
}

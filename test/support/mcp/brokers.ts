// A broker over programs without a sandbox and over addresses, and an agent that calls its tools.

import { fileURLToPath } from 'node:url';
import { newId } from '@drover/core/ids';
import type { Question } from '@drover/core/agent/calls/calls';
import type { ServerLine } from '@drover/core/tools/served/tool-servers';
import type { ToolOutput } from '@drover/core/tools/tool';
import type { Decision, Event } from '@drover/protocol/events';
import { Broker, type Opened, type Wanted } from '@drover/mcp/broker';
import type { OpenWire } from '@drover/mcp/instance';
import { startMcpServerProcess } from '@drover/mcp/process/server-process';
import { StdioWire } from '@drover/mcp/process/stdio-wire';
import { openSdkHttpWire } from '@drover/mcp/sdk/http-wire';
import type { HttpReach, ServerSpec } from '@drover/mcp/server-spec';
import { openLoginStore } from '../../../bin/mcp/login/login-store.ts';
import type { HostileFault } from '@drover/rehearsal/mcp/hostile-server';
import { onTestFinished } from 'vitest';

export const HOSTILE = fileURLToPath(new URL('hostile.ts', import.meta.url));
const NODE = process.execPath;

export function hostile(fault: HostileFault, more: Partial<ServerSpec> = {}): ServerSpec {
  return program('hostile', [NODE, HOSTILE, fault], more);
}

export function program(
  name: string,
  [command = '', ...args]: readonly string[],
  more: Partial<ServerSpec> = {},
): ServerSpec {
  const reach = { type: 'stdio', command, args, env: {}, cwd: undefined, net: [], readable: [], writable: [] } as const;
  return entry(name, reach, more);
}

export function address(url: string, more: Partial<ServerSpec & Pick<HttpReach, 'headers'>> = {}): ServerSpec {
  const { headers = {}, ...others } = more;
  return entry('remote', { type: 'http', url, headers }, others);
}

function entry(name: string, reach: ServerSpec['reach'], more: Partial<ServerSpec>): ServerSpec {
  return {
    name,
    scope: 'shared',
    isDeferred: false,
    isRequired: false,
    idempotent: [],
    timeoutMs: 20_000,
    startMs: 60_000,
    place: 'a test',
    reach,
    ...more,
  };
}

export type Desk = {
  readonly opened: Opened;
  /** Process ids of the servers, in the order of their starts. */
  readonly pids: readonly number[];
  readonly events: readonly Event[];
  readonly questions: readonly Question[];
  readonly pauses: readonly number[];
  readonly line: (cwd?: string) => ServerLine;
  /** Opens servers once more in the same process, as another run does. */
  readonly again: (wanted: Partial<Wanted>) => Promise<Opened>;
  readonly close: () => Promise<void>;
};

type DeskOptions = {
  readonly charsMax?: number;
  readonly answer?: (asked: Question) => Decision & { readonly words?: string };
  /** The state folder whose logins are used. */
  readonly loginsAt?: string;
  readonly idleMs?: number;
};

export async function desk(
  servers: readonly ServerSpec[],
  { charsMax = Infinity, answer = yes, loginsAt, idleMs = 0 }: DeskOptions = {},
): Promise<Desk> {
  const pids: number[] = [];
  const events: Event[] = [];
  const questions: Question[] = [];
  const pauses: number[] = [];
  const openWire = async ({ name, reach }: ServerSpec, { cwd }: { readonly cwd: string }): Promise<OpenWire> => {
    if (reach.type === 'http') {
      const login = loginsAt && { server: name, store: openLoginStore(loginsAt, { server: name, url: reach.url }) };
      const wire = await openSdkHttpWire(reach, login === '' ? undefined : login);
      return { wire, why: () => wire.why, complaints: () => '' };
    }
    const { command, args } = reach;
    const env = { PATH: process.env['PATH'] ?? '', ...reach.env };
    const server = await startMcpServerProcess({ command, args, env, cwd, sandbox: undefined, mark: newId('mcp') });
    pids.push(server.pid);
    const wire = new StdioWire(server);
    return { wire, why: () => wire.why, complaints: () => wire.complaints };
  };
  const broker = new Broker({
    version: 'test',
    idleMs,
    // Programs are not probed: all of them speak the previous revision.
    priorsOf: ({ reach }) => ({
      get: () => (reach.type === 'stdio' ? { kind: 'legacy' } : undefined),
      set: () => undefined,
    }),
    onDiagnostic: () => undefined,
    pause: async (ms) => void pauses.push(ms),
  });
  onTestFinished(() => broker.close());
  const first: Wanted = { servers, cwd: '/tmp', openWire, rights: '', charsMax, frozen: undefined };
  const again = (wanted: Partial<Wanted>) => broker.open({ ...first, ...wanted });
  const opened = await again({});
  const line = (cwd = '/tmp') =>
    opened.lineFor({
      cwd,
      sandbox: undefined,
      emit: (event) => void events.push(event),
      question: async (asked) => {
        questions.push(asked);
        return answer(asked);
      },
    });
  return { opened, pids, events, questions, pauses, line, again, close: () => broker.close() };
}

function yes(): Decision {
  return { allowed: true, by: 'user', always: false };
}

type Call = { readonly server?: string; readonly tool?: string; readonly args?: Record<string, string> };

/** Calls `go` of the hostile server by default. Resolves to the error text of a call that fails. */
export async function call(
  line: ServerLine,
  { server = 'hostile', tool = 'go', args = {} }: Call = {},
  {
    signal = new AbortController().signal,
    onDelta = () => undefined,
  }: { signal?: AbortSignal; onDelta?: (delta: string) => void } = {},
): Promise<ToolOutput> {
  const callId = newId('call');
  const label = { callId, toolUseId: 't', callIndex: 0, index: 0, name: `mcp__${server}__${tool}`, summary: tool };
  try {
    return await line.call({ label, server, tool, args }, { onDelta }, signal);
  } catch (error) {
    if (error instanceof Error && error.name === 'ToolError') return { output: error.message, isError: true };
    throw error;
  }
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false;
    throw error;
  }
}

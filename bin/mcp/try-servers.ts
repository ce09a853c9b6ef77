// Tries MCP servers for drover mcp test and drover doctor: each is started, asked for its tools, and ended.

import { Broker, type Wanted } from '@drover/mcp/broker';
import { CHARS_PER_TOKEN_DEFAULT } from '@drover/core/conversation/conversation';
import type { ServerSpec } from '@drover/mcp/server-spec';
import type { Io } from '../io.ts';
import { openContainment } from '../sandbox/containment.ts';
import { readSandboxWish } from '../sandbox/sandbox-options.ts';
import type { Settings } from '../start/settings.ts';
import { Marks } from './marks.ts';
import { openMcpServerWire } from './server-box.ts';
import { openServerVerdicts } from './verdicts.ts';

export type Tried = {
  readonly name: string;
  readonly works: boolean;
  /** Its tools, or why it does not work. */
  readonly says: string;
  readonly leftOut: readonly string[];
};

export async function tryMcpServers(
  servers: readonly ServerSpec[],
  { settings, top, io }: TrialPlace,
): Promise<readonly Tried[]> {
  if (servers.length === 0) return [];
  const wish = readSandboxWish({ sandbox: undefined, net: [], writable: [] }, { settings, cwd: io.cwd, root: top });
  const containment = await openContainment(wish, { io, state: settings.home, project: top });
  const ground = { home: settings.home, containment, rules: settings.rules, marks: Marks.of(settings.home), io };
  const broker = new Broker({
    version: '0.1.0',
    priorsOf: openServerVerdicts(settings.home),
    onDiagnostic: () => undefined,
  });
  try {
    const openWire: Wanted['openWire'] = (spec, place) => openMcpServerWire(spec, place, ground);
    const around = { cwd: top, openWire, rights: '', charsMax: Infinity, frozen: undefined };
    return await Promise.all(servers.map((spec) => tryMcpServer(broker, { ...around, servers: [spec] })));
  } finally {
    await broker.close();
  }
}

export type TrialPlace = { readonly settings: Settings; readonly top: string; readonly io: Io };

async function tryMcpServer(broker: Broker, wanted: Wanted): Promise<Tried> {
  const [{ name } = { name: '' }] = wanted.servers;
  const { tools, problems, close } = await broker.open(wanted);
  await close();
  const failed = problems.find(({ message }) => message.includes('did not start'));
  if (failed !== undefined) return { name, works: false, says: failed.message, leftOut: [] };
  const { length } = JSON.stringify(tools.map(({ name, description, schema }) => ({ name, description, schema })));
  const tokens = Math.ceil(length / CHARS_PER_TOKEN_DEFAULT);
  const says = `${tools.length} ${tools.length === 1 ? 'tool' : 'tools'}, about ${tokens} tokens${tools.length === 0 ? '' : `: ${tools.map(({ tool }) => tool).join(', ')}`}`;
  return { name, works: true, says, leftOut: problems.map(({ message }) => message) };
}

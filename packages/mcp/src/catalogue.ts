// The tools of all servers, as agents declare them.
//
// Guarantees
//   1. The same servers with the same tools give the same bytes, in whatever order they answer.
//   2. A name is taken once, whatever its case: the first server in order keeps it.
//   3. Where all definitions together are too long, or a server's entry says so, they are deferred.

import { servedName } from '@drover/core/tools/served/names';
import type { ServedTool } from '@drover/core/tools/served/served';
import type { Problem } from './broker.ts';
import type { Listed } from './hostile/listed-tool.ts';
import type { ServerSpec } from './server-spec.ts';

export type Declared = { readonly tools: readonly ServedTool[]; readonly problems: readonly Problem[] };

export type ListedServer = { readonly spec: ServerSpec } & ({ readonly listed: Listed } | { readonly problem: string });

export function catalogueMcpTools(servers: readonly ListedServer[], charsMax: number): Declared {
  const tools = new Map<string, ServedTool>();
  const problems: Problem[] = [];
  for (const server of servers.toSorted((a, b) => orderMcpTools(a.spec.name, b.spec.name))) {
    const { spec } = server;
    const tell = (message: string, isFatal = false) => problems.push({ server: spec.name, message, isFatal });
    if ('problem' in server) {
      tell(`the MCP server ${spec.name} (${spec.place}) did not start: ${server.problem}`, spec.isRequired);
      continue;
    }
    for (const { name, why } of server.listed.leftOut)
      tell(`the MCP server ${spec.name} lists ${name}, which is left out: ${why}`);
    for (const { name: tool, description, schema } of server.listed.tools.toSorted((a, b) =>
      orderMcpTools(a.name, b.name),
    )) {
      const name = servedName(spec.name, tool);
      const key = name.toLowerCase();
      if (tools.has(key)) {
        tell(`the MCP server ${spec.name} lists ${tool}, which is left out: another tool is called ${name}`);
        continue;
      }
      const repeatable = spec.idempotent === 'all' || spec.idempotent.includes(tool);
      tools.set(key, { name, description, schema, server: spec.name, tool, repeatable, isDeferred: spec.isDeferred });
    }
  }
  return { tools: deferMcpToolsIfLong([...tools.values()], charsMax), problems };
}

function deferMcpToolsIfLong(tools: readonly ServedTool[], charsMax: number): readonly ServedTool[] {
  const declared = tools.filter(({ isDeferred }) => !isDeferred);
  const { length } = JSON.stringify(declared.map(({ name, description, schema }) => ({ name, description, schema })));
  return length <= charsMax ? tools : tools.map((tool) => ({ ...tool, isDeferred: true }));
}

function orderMcpTools(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

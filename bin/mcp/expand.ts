// ${NAME} and ${NAME:-default} in the entry of an MCP server, as other programs write them.

import type { McpEntry } from '../files/mcp-file.ts';
import type { Io } from '../io.ts';

const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

/** The entry with values of the environment, and the names of variables that are missing. */
export function expandMcpEntry(
  entry: McpEntry,
  env: Io['env'],
): { readonly entry: McpEntry; readonly missing: readonly string[] } {
  const missing = new Set<string>();
  const expand = (text: string) =>
    text.replaceAll(VARIABLE, (_, name: string, otherwise: string | undefined) => {
      const value = env[name] === '' ? undefined : env[name];
      if (value === undefined && otherwise === undefined) missing.add(name);
      return value ?? otherwise ?? '';
    });
  const all = (texts: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, expand(text)]));
  const { command, args, env: own, url, headers, oauth } = entry;
  const expanded: McpEntry = {
    ...entry,
    ...(command !== undefined && { command: expand(command) }),
    ...(args !== undefined && { args: args.map(expand) }),
    ...(own !== undefined && { env: all(own) }),
    ...(url !== undefined && { url: expand(url) }),
    ...(headers !== undefined && { headers: all(headers) }),
    ...(oauth?.clientSecret !== undefined && { oauth: { ...oauth, clientSecret: expand(oauth.clientSecret) } }),
  };
  return { entry: expanded, missing: [...missing] };
}

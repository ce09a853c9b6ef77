// MCP servers as users write them: under `mcp` in the config, and in files of the form of .mcp.json.
//
// Other programs read .mcp.json too, so keys there that drover does not know are theirs. In the config they are
// mistakes.

import { z } from 'zod';
import { UsageError } from '@drover/core/errors';
import type { ReadDocument } from '@drover/documents/read-document';
import { parseSandboxHost } from '../sandbox/hosts-and-modes.ts';
import { requireFileDocument } from './document.ts';
import { duration, parsedField, text, texts } from './values.ts';

const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$/;

const shape = {
  type: z
    .enum(['stdio', 'http', 'streamable-http'])
    .exactOptional()
    .describe('How it is reached: stdio (a program) or http (streamable HTTP). Default: what command or url says.'),
  command: text.exactOptional().describe('The program of the server.'),
  args: z.array(z.string()).exactOptional().describe('Its arguments.'),
  env: z
    .record(z.string(), z.string())
    .exactOptional()
    .describe('Environment variables of the program. ${NAME} stands for a variable of your own environment.'),
  cwd: text.exactOptional().describe('Where it starts. Default: the folder that is worked on.'),
  url: text.exactOptional().describe('The address of a server that runs elsewhere.'),
  headers: z
    .record(z.string(), z.string())
    .exactOptional()
    .describe('HTTP headers, such as Authorization: Bearer ${TOKEN}.'),
  oauth: z
    .looseObject({
      clientId: text.exactOptional().describe('Of a client that is registered with the server already.'),
      clientSecret: text.exactOptional().describe('Its secret, such as ${SECRET}.'),
      scope: text.exactOptional().describe('What the login asks for. Default: what the server says.'),
      callbackPort: z.int().min(1).max(65_535).exactOptional().describe('Port where the browser comes back.'),
    })
    .exactOptional()
    .describe('For drover mcp login, where the server cannot say it itself.'),
  scope: z
    .enum(['shared', 'task'])
    .exactOptional()
    .describe('One server for all workers (shared), or one for each task, in its workspace (task). Default: shared.'),
  defer: z.boolean().exactOptional().describe('Declare its tools only once find_tools has found them.'),
  required: z
    .boolean()
    .exactOptional()
    .describe('Do not begin without it. Default: a warning says that it is missing.'),
  idempotent: z
    .union([z.boolean(), texts])
    .exactOptional()
    .describe('Tools whose calls may be repeated after a crash; true for all of them. Default: none.'),
  timeout: duration.exactOptional().describe('How long a call may be silent. Default: 60s.'),
  startTimeout: duration.exactOptional().describe('How long it may take to start. Default: 30s.'),
  net: z
    .array(parsedField((written) => parseSandboxHost(written).text))
    .exactOptional()
    .describe('Hosts that it may reach from the sandbox. Default: none.'),
  readable: texts.exactOptional().describe('Folders that it may read, besides the one that is worked on.'),
  writable: texts.exactOptional().describe('Folders that it may write to.'),
};

type Shaped = z.output<z.ZodObject<typeof shape>>;

function checkMcpReach(entry: Shaped, context: z.core.$RefinementCtx<Shaped>): void {
  const complain = (path: string, message: string) => context.addIssue({ code: 'custom', message, path: [path] });
  const { type, command, url } = entry;
  if (command !== undefined && url !== undefined)
    return complain('url', 'is there besides command; a server has one of them');
  if (command === undefined && url === undefined)
    return complain('type', 'is not enough; name the command or the url of the server');
  if (type === 'stdio' && command === undefined) return complain('type', 'is stdio, so there must be a command');
  if (type !== undefined && type !== 'stdio' && url === undefined)
    complain('type', `is ${type}, so there must be a url`);
}

function checkMcpNames(servers: Readonly<Record<string, unknown>>, context: z.core.$RefinementCtx): void {
  const message =
    'is no name for a server; it has at most 40 letters, digits, _ and -, and begins with a letter or digit';
  for (const name of Object.keys(servers))
    if (!NAME.test(name)) context.addIssue({ code: 'custom', message, path: [name] });
}

/** The strict form of the config. */
export const mcpEntries = z
  .record(z.string(), z.strictObject(shape).superRefine(checkMcpReach))
  .superRefine(checkMcpNames);

const mcpFile = z.looseObject({
  mcpServers: z
    .record(z.string(), z.looseObject(shape).superRefine(checkMcpReach))
    .superRefine(checkMcpNames)
    .describe('The servers, by name.'),
});

export type McpEntry = z.output<z.ZodObject<typeof shape>>;

/** Throws UsageError with the position of each mistake. */
export function parseMcpFile(written: string, file: string): ReadDocument<z.output<typeof mcpFile>> {
  try {
    JSON.parse(written);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new UsageError(mcpJsonMistake(error, written, file), { cause: error });
  }
  // JSON allows tabs in places where YAML does not.
  return requireFileDocument(
    written.replaceAll(/^[\t ]+/gm, (indent) => ' '.repeat(indent.length)),
    file,
    {
      what: 'the list of MCP servers',
      schema: mcpFile,
    },
  );
}

function mcpJsonMistake({ message }: SyntaxError, written: string, file: string): string {
  const [, position] = /at position (\d+)/.exec(message) ?? [];
  const before = written.slice(0, position === undefined ? written.length : Number(position)).split('\n');
  return `${file}:${before.length}:${(before.at(-1)?.length ?? 0) + 1}: is no JSON: ${message.replace(/ \(line.*$| in JSON at position.*$/, '')}; mend the file`;
}

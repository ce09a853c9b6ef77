// Adds servers to a file like .mcp.json, and removes them. Everything else in the file stays as it is.

import { readFile, rename, writeFile } from 'node:fs/promises';
import { UsageError } from '@drover/core/errors';
import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';
import { parseMcpFile } from '../files/mcp-file.ts';

/** Undefined removes the server. Throws UsageError if the file cannot be read, or the server is not in it. */
export async function editMcpFile(file: string, name: string, entry: JsonObject | undefined): Promise<void> {
  const before = await readMcpFileToEdit(file);
  const servers = isJsonObject(before['mcpServers'] ?? null) ? (before['mcpServers'] as JsonObject) : {};
  if (entry !== undefined && name in servers)
    throw new UsageError(`${file} has a server ${name} already; remove it first: drover mcp remove ${name}`);
  if (entry === undefined && !(name in servers))
    throw new UsageError(`${file} has no server ${name}; drover mcp list shows where each server is named`);
  const { [name]: _, ...others } = servers;
  const after = { ...before, mcpServers: entry === undefined ? others : { ...others, [name]: entry } };
  const text = `${JSON.stringify(after, undefined, 2)}\n`;
  parseMcpFile(text, file);
  await writeFile(`${file}.new`, text);
  await rename(`${file}.new`, file);
}

async function readMcpFileToEdit(file: string): Promise<JsonObject> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw new UsageError(`${file} cannot be read: ${String(error)}`, { cause: error });
  });
  if (text === undefined) return {};
  parseMcpFile(text, file);
  return JSON.parse(text) as Json as JsonObject;
}

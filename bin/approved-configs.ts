// Which configs of projects were approved: by their very content, in approved.json in drover's own folder.
//
// A key is the SHA-256 of a file, its value the path at which it was approved. Whoever changes a byte of the file
// has another one, and it is a stranger's again.

import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { UsageError } from '@drover/core/failure';
import { isJsonObject, type Json, type JsonObject } from '@drover/core/json';

export type ProjectFile = { readonly path: string; readonly sha256: string };

export async function isApproved(home: string, { sha256 }: ProjectFile): Promise<boolean> {
  return Object.hasOwn(await approved(home), sha256);
}

/** Throws UsageError where it can't be kept. */
export async function approve(home: string, { path, sha256 }: ProjectFile): Promise<void> {
  await keep(home, { ...(await approved(home)), [sha256]: path });
}

export async function revoke(home: string, { sha256 }: ProjectFile): Promise<void> {
  const { [sha256]: _, ...others } = await approved(home);
  await keep(home, others);
}

// What can't be read approves nothing.
async function approved(home: string): Promise<JsonObject> {
  const text = await readFile(pathIn(home), 'utf8').catch(() => '{}');
  try {
    const found = JSON.parse(text) as Json;
    return isJsonObject(found) ? found : {};
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

async function keep(home: string, all: JsonObject): Promise<void> {
  const path = pathIn(home);
  try {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(`${path}.new`, `${JSON.stringify(all, undefined, 2)}\n`, { mode: 0o600 });
    await rename(`${path}.new`, path);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(`${path} cannot be written: ${why}`, { cause: error });
  }
}

function pathIn(home: string): string {
  return join(home, 'approved.json');
}

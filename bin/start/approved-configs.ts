// Which configs of projects the user has approved: approved.json in drover's own folder.
//
// An approval is bound to the real path of the repository, the place of the config in it, and the SHA-256 of its
// bytes. The same content in another repository, a repository that was moved, and a config with one other byte are
// not approved. Drovers before this one bound an approval to the content alone: their entries count for nothing.

import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';

/** A project's config as it is approved. */
export type ProjectConfig = {
  /** The top of the repository, with all links resolved. */
  readonly repository: string;
  /** The path of the config in it. */
  readonly config: string;
  readonly sha256: string;
};

/** `elsewhere`: the same content is approved at another path. `unbound`: an older drover approved it, for any path. */
export type Approval = 'approved' | 'elsewhere' | 'unbound' | 'none';

export async function approvalOf(home: string, project: ProjectConfig): Promise<Approval> {
  const { approvals, unbound } = await readApproved(home);
  if (approvals.some((each) => isSame(each, project))) return 'approved';
  if (approvals.some(({ sha256 }) => sha256 === project.sha256)) return 'elsewhere';
  return Object.hasOwn(unbound, project.sha256) ? 'unbound' : 'none';
}

/** Why an approval that the user may remember does not count; undefined where there is none to remember. */
export function whyNotApproved(approval: Approval): string | undefined {
  switch (approval) {
    case 'elsewhere':
      return 'it is approved in another folder, which does not count here';
    case 'unbound':
      return 'an older drover approved it without binding it to a folder, which does not count any more';
    case 'approved':
    case 'none':
      return undefined;
  }
}

/** Throws UsageError where the approval can't be stored. */
export async function approve(home: string, project: ProjectConfig): Promise<void> {
  const { approvals, unbound } = await readApproved(home);
  await write(home, { approvals: [...approvals.filter((each) => !isSame(each, project)), project], unbound });
}

/** Throws UsageError where the approval can't be taken back. */
export async function revoke(home: string, project: ProjectConfig): Promise<void> {
  const { approvals, unbound } = await readApproved(home);
  const { [project.sha256]: _, ...others } = unbound;
  await write(home, { approvals: approvals.filter((each) => !isSame(each, project)), unbound: others });
}

function isSame(a: ProjectConfig, b: ProjectConfig): boolean {
  return a.repository === b.repository && a.config === b.config && a.sha256 === b.sha256;
}

type Approved = {
  readonly approvals: readonly ProjectConfig[];
  /** By SHA-256: entries of older drovers, kept to tell the user why they don't count. */
  readonly unbound: JsonObject;
};

/** A file that can't be read approves nothing. */
async function readApproved(home: string): Promise<Approved> {
  const text = await readFile(pathIn(home), 'utf8').catch(() => '{}');
  const { approvals = [], ...others } = parsed(text);
  const unbound = Object.entries(others).filter(([key]) => /^[0-9a-f]{64}$/.test(key));
  return {
    approvals: Array.isArray(approvals) ? approvals.flatMap(projectIn) : [],
    unbound: Object.fromEntries(unbound),
  };
}

function parsed(text: string): JsonObject {
  try {
    const found = JSON.parse(text) as Json;
    return isJsonObject(found) ? found : {};
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

function projectIn(entry: Json): readonly ProjectConfig[] {
  if (!isJsonObject(entry)) return [];
  const { repository, config, sha256 } = entry;
  if (typeof repository !== 'string' || typeof config !== 'string' || typeof sha256 !== 'string') return [];
  return [{ repository, config, sha256 }];
}

async function write(home: string, { approvals, unbound }: Approved): Promise<void> {
  const path = pathIn(home);
  try {
    await mkdir(dirname(path), { recursive: true });
    const text = JSON.stringify({ ...unbound, approvals }, undefined, 2);
    await writeFile(`${path}.new`, `${text}\n`, { mode: 0o600 });
    await rename(`${path}.new`, path);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(`${path} cannot be written: ${why}`, { cause: error });
  }
}

function pathIn(home: string): string {
  return join(home, 'approved.json');
}

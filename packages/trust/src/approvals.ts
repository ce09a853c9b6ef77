// The files of projects that the user has approved: approved.json in drover's own folder.
//
// An approval is bound to the real path of the repository, the place of the file in it, and the SHA-256 of its
// bytes. The same content in another repository, a repository that was moved, and a file with one other byte are
// not approved. The first version bound an approval to the content alone: its entries count for nothing.

import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { isJsonObject, type Json, type JsonObject } from '@drover/protocol/json';

/** A file, or a folder, of a project as it is approved. */
export type ProjectEntry = {
  /** The top of the repository, with all links resolved. */
  readonly repository: string;
  /** The path in it. */
  readonly file: string;
  readonly sha256: string;
};

/** `elsewhere`: the same content is approved at another path. `unbound`: an older drover approved it, for any path. */
export type Approval = 'approved' | 'elsewhere' | 'unbound' | 'none';

export async function trustApprovalOf(home: string, entry: ProjectEntry): Promise<Approval> {
  return (await readTrustApprovals(home))(entry);
}

/** Reads the stored approvals once, for any number of questions. */
export async function readTrustApprovals(home: string): Promise<(entry: ProjectEntry) => Approval> {
  const { approvals, unbound } = await readTrustedEntries(home);
  return (entry) => {
    if (approvals.some((each) => isSameTrustEntry(each, entry))) return 'approved';
    if (approvals.some(({ sha256 }) => sha256 === entry.sha256)) return 'elsewhere';
    return Object.hasOwn(unbound, entry.sha256) ? 'unbound' : 'none';
  };
}

/** Why an approval that the user may remember does not count; undefined if there is none to remember. */
export function whyNotTrusted(approval: Approval): string | undefined {
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

/** Throws UsageError if the approvals can't be stored. */
export async function approveTrustEntries(home: string, entries: readonly ProjectEntry[]): Promise<void> {
  const { approvals, unbound } = await readTrustedEntries(home);
  const others = approvals.filter((each) => !entries.some((entry) => isSameTrustEntry(each, entry)));
  await writeTrustApprovals(home, { approvals: [...others, ...entries], unbound });
}

/** Removes every approval of a repository, also those of earlier contents. Returns how many there were. */
export async function revokeTrustApprovals(home: string, repository: string): Promise<number> {
  const { approvals, unbound } = await readTrustedEntries(home);
  const left = approvals.filter((each) => each.repository !== repository);
  if (left.length < approvals.length) await writeTrustApprovals(home, { approvals: left, unbound });
  return approvals.length - left.length;
}

function isSameTrustEntry(a: ProjectEntry, b: ProjectEntry): boolean {
  return a.repository === b.repository && a.file === b.file && a.sha256 === b.sha256;
}

type Approved = {
  readonly approvals: readonly ProjectEntry[];
  /** By SHA-256: entries of the first version, kept to tell the user why they don't count. */
  readonly unbound: JsonObject;
};

/** A file that can't be read approves nothing. */
async function readTrustedEntries(home: string): Promise<Approved> {
  const text = await readFile(trustApprovalsPath(home), 'utf8').catch(() => '{}');
  const { approvals = [], ...others } = parseTrustApprovals(text);
  const unbound = Object.entries(others).filter(([key]) => /^[0-9a-f]{64}$/.test(key));
  return {
    approvals: Array.isArray(approvals) ? approvals.flatMap(trustEntryIn) : [],
    unbound: Object.fromEntries(unbound),
  };
}

function parseTrustApprovals(text: string): JsonObject {
  try {
    const found = JSON.parse(text) as Json;
    return isJsonObject(found) ? found : {};
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

// Version 0.1 knew configs only, and called the file `config`.
function trustEntryIn(entry: Json): readonly ProjectEntry[] {
  if (!isJsonObject(entry)) return [];
  const { repository, config, file = config, sha256 } = entry;
  if (typeof repository !== 'string' || typeof file !== 'string' || typeof sha256 !== 'string') return [];
  return [{ repository, file, sha256 }];
}

async function writeTrustApprovals(home: string, { approvals, unbound }: Approved): Promise<void> {
  const path = trustApprovalsPath(home);
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

function trustApprovalsPath(home: string): string {
  return join(home, 'approved.json');
}

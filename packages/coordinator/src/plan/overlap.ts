// Which tasks mean to change the same files: found by looking paths up, since a batch has thousands of tasks
// and comparing each with each would take longer than many of them.
//
// Two patterns are taken to overlap where what stands before their first wildcard doesn't tell them
// apart: waiting needlessly costs time, a conflict costs an attempt.

import type { PlannedTask } from '@drover/protocol/plan';

type Pattern = { readonly path: string; readonly isWhole: boolean };

/** Finds tasks that plan to change the same files. Tasks are added in plan order and identified by their index. */
export class Overlaps {
  readonly #wholes = new Map<string, number[]>(); // exact paths
  readonly #within = new Map<string, number[]>(); // folders that contain a path
  readonly #begun: { readonly path: string; readonly at: number }[] = []; // fixed prefixes of globs
  readonly #all: { readonly path: string; readonly at: number }[] = [];

  add({ files }: PlannedTask, at: number): void {
    for (const { path, isWhole } of files.map(patternOfPlannedFiles)) {
      this.#all.push({ path, at });
      if (!isWhole) this.#begun.push({ path, at });
      else {
        pushPlanOverlap(this.#wholes, path, at);
        for (const folder of foldersOfPlannedPath(path)) pushPlanOverlap(this.#within, folder, at);
      }
    }
  }

  /** The indexes of added tasks that overlap with it, in ascending order. */
  with({ files }: PlannedTask): readonly number[] {
    const found = new Set<number>();
    for (const { path, isWhole } of files.map(patternOfPlannedFiles)) {
      const begun = isWhole ? this.#begun : this.#all;
      for (const other of begun) if (path.startsWith(other.path) || other.path.startsWith(path)) found.add(other.at);
      if (!isWhole) continue;
      for (const at of this.#within.get(path) ?? []) found.add(at);
      for (const place of [path, ...foldersOfPlannedPath(path)])
        for (const at of this.#wholes.get(place) ?? []) found.add(at);
    }
    return [...found].sort((a, b) => a - b);
  }
}

function pushPlanOverlap(map: Map<string, number[]>, key: string, at: number): void {
  const known = map.get(key);
  if (known === undefined) map.set(key, [at]);
  else known.push(at);
}

function patternOfPlannedFiles(pattern: string): Pattern {
  const normal = pattern.replace(/^\.\//, '').replace(/\/+$/, '');
  // Brackets are not wildcards here: folders named [id] are more common in plans than character classes.
  const wildcard = normal.search(/[*?{]/);
  return wildcard === -1 ? { path: normal, isWhole: true } : { path: normal.slice(0, wildcard), isWhole: false };
}

function foldersOfPlannedPath(path: string): readonly string[] {
  const folders: string[] = [];
  for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) folders.push(path.slice(0, end));
  return folders;
}

// Which tasks mean to change the same files: found by looking paths up, since a batch has thousands of tasks
// and comparing each with each would take longer than many of them.
//
// Two patterns are taken to overlap where what stands before their first wildcard doesn't tell them
// apart: waiting needlessly costs time, a conflict costs an attempt.

import type { PlannedTask } from '@drover/protocol/plan';

type Pattern = { readonly path: string; readonly isWhole: boolean };

/** Tasks are added in the order of the plan, and known by their number in it. */
export class Overlaps {
  readonly #wholes = new Map<string, number[]>(); // by path
  readonly #within = new Map<string, number[]>(); // by folder: what is somewhere in it
  readonly #begun: { readonly path: string; readonly at: number }[] = []; // what stands before a wildcard
  readonly #all: { readonly path: string; readonly at: number }[] = [];

  add({ files }: PlannedTask, at: number): void {
    for (const { path, isWhole } of files.map(patternOf)) {
      this.#all.push({ path, at });
      if (!isWhole) this.#begun.push({ path, at });
      else {
        push(this.#wholes, path, at);
        for (const folder of foldersOf(path)) push(this.#within, folder, at);
      }
    }
  }

  /** The numbers of those added so far that overlap with it, from the lowest. */
  with({ files }: PlannedTask): readonly number[] {
    const found = new Set<number>();
    for (const { path, isWhole } of files.map(patternOf)) {
      const begun = isWhole ? this.#begun : this.#all;
      for (const other of begun) if (path.startsWith(other.path) || other.path.startsWith(path)) found.add(other.at);
      if (!isWhole) continue;
      for (const at of this.#within.get(path) ?? []) found.add(at);
      for (const place of [path, ...foldersOf(path)]) for (const at of this.#wholes.get(place) ?? []) found.add(at);
    }
    return [...found].sort((a, b) => a - b);
  }
}

function push(map: Map<string, number[]>, key: string, at: number): void {
  const known = map.get(key);
  if (known === undefined) map.set(key, [at]);
  else known.push(at);
}

function patternOf(pattern: string): Pattern {
  const normal = pattern.replace(/^\.\//, '').replace(/\/+$/, '');
  // Not brackets: folders are called [id] more often than a plan has a glob with a class in it.
  const wildcard = normal.search(/[*?{]/);
  return wildcard === -1 ? { path: normal, isWhole: true } : { path: normal.slice(0, wildcard), isWhole: false };
}

function foldersOf(path: string): readonly string[] {
  const folders: string[] = [];
  for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) folders.push(path.slice(0, end));
  return folders;
}

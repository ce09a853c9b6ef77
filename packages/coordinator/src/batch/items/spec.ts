// A batch spec as data: files, groups, the work on each, limits.
//
// bin/files/batch-spec.ts reads it from a file. Mistakes that only a look at the repository can show are Problems with
// the key they belong to, so the reader of the file can name the line.

import type { Cap } from '@drover/protocol/limits';
import type { Delivery } from '@drover/protocol/run';

export type BatchSpec = {
  readonly name: string;
  readonly select: Select;
  readonly group: Grouping;
  readonly task: TaskTemplate;
  readonly gates: readonly string[]; // run on the merged tree
  readonly setup: readonly string[]; // commands that prepare each workspace
  readonly limits: BatchLimits;
  readonly vars: Readonly<Record<string, string>>;
  readonly workers?: number;
  readonly deliver?: Delivery;
};

/** Each key narrows the selection: files that match, that have changed, and that contain the pattern. */
export type Select = {
  readonly files?: readonly string[]; // globs
  readonly list?: string; // a file with paths; - is standard input
  readonly diff?: string; // a git range, such as main...HEAD
  readonly command?: string; // prints NUL-separated paths, or items as JSON lines
  readonly repos?: string; // a file that names repositories
  readonly exclude: readonly string[]; // globs
  readonly contains?: RegExp;
};

export const GROUPINGS = ['file', 'directory', 'codeowners', 'package'] as const;

export type Grouping = { readonly by: (typeof GROUPINGS)[number]; readonly max: number }; // files per task

/** All texts are templates, except the model. */
type TaskTemplate = {
  readonly id?: string;
  readonly title?: string;
  readonly prompt: string;
  readonly gates: readonly string[];
  readonly model?: string; // as the user wrote it; not a template
  readonly agent?: string; // by name; not a template
};

export type BatchLimits = {
  readonly budget?: Cap;
  readonly perTask?: Cap;
  readonly timeoutMs?: number;
  readonly perTaskTimeoutMs?: number;
  readonly stopWhenFailed?: StopWhenFailed;
};

export type StopWhenFailed = { readonly percent: number } | { readonly count: number };

/** The number of failed tasks that stops the rest. */
export function failuresMax(stop: StopWhenFailed | undefined, tasks: number): number | undefined {
  if (stop === undefined) return undefined;
  return 'count' in stop ? stop.count : Math.max(1, Math.ceil((tasks * stop.percent) / 100));
}

/** A mistake, and its key in the spec, such as `select.files.0`. */
export type SpecProblem = {
  readonly key: string;
  readonly message: string;
  /** The text as written, and a suggestion. */
  readonly near?: { readonly word: string; readonly known: readonly string[] };
};

/** A selected item: usually one file. */
export type Item = {
  readonly files: readonly string[];
  readonly id?: string;
  readonly vars?: Readonly<Record<string, string>>;
};

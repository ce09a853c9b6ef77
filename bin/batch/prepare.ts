// Makes the tasks of a batch from its spec and a repository. Sends no request, writes nothing.

import { dirname, relative, resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { CODEOWNERS_PATHS, type Owners, parseCodeowners } from '@drover/coordinator/batch/items/codeowners';
import { groupBatchItems } from '@drover/coordinator/batch/items/group';
import { type ListedItem, selectBatchItems, type Sources } from '@drover/coordinator/batch/items/select';
import { isInBatchShard, type Shard } from '@drover/coordinator/batch/shard';
import {
  listItemsChangedIn,
  isItemSourceProblem,
  listItemsByCommand,
  parseBatchItems,
} from '@drover/coordinator/batch/items/sources';
import type { SpecProblem } from '@drover/coordinator/batch/items/spec';
import { type BatchTask, makeBatchTasks } from '@drover/coordinator/batch/tasks';
import { readItemTexts, type Tree, readItemTree } from '@drover/coordinator/batch/items/tree';
import type { Git } from '@drover/coordinator/git/git';
import { gitOfRepository, type Repository } from '@drover/coordinator/git/repository';
import { MB, requireOwnFile } from '@drover/core/files/own-file';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import type { Io } from '../io.ts';
import { watchForStopSignal } from '../stop.ts';
import { refuseBatchSpec, type SpecFile } from '../files/batch-spec.ts';

const TASKS_MAX = 10_000;
// A list of 10,000 files with variables is larger than 1 MB.
const LIST_BYTES_MAX = 16 * MB;

export type Prepared = {
  readonly tasks: readonly BatchTask[]; // tasks of this shard
  readonly total: number; // tasks of all shards
  readonly tree: Tree;
  readonly unmatched: readonly SpecProblem[];
};

export type BatchPlace = {
  readonly repository: Repository;
  readonly name: string; // of the repository
  readonly shard: Shard | undefined;
  /** If true, a glob need not match in this repository. */
  readonly isOneOfSeveral: boolean;
};

/** Throws UsageError that lists all mistakes with their positions. */
export async function prepareBatch(specFile: SpecFile, place: BatchPlace, io: Io): Promise<Prepared> {
  const { repository, name, shard, isOneOfSeveral } = place;
  const { spec } = specFile;
  const stop = watchForStopSignal(io, () => undefined);
  try {
    const git = gitOfRepository(repository, childProcessEnvironment(io.env));
    const tree = await readItemTree(git, repository.head, stop.signal);
    const sources = await readBatchSources(specFile, { repository, git, io }, stop.signal);
    const { items, problems, unmatched } = await selectBatchItems(spec.select, { git, tree, sources }, stop.signal);
    refuseBatchSpec([...problems, ...(isOneOfSeveral ? [] : unmatched)], specFile);
    const owners = spec.group.by === 'codeowners' ? await readBatchOwners(git, tree, stop.signal) : [];
    const made = makeBatchTasks(spec, groupBatchItems(items, spec.group, { tree, owners }), name);
    refuseBatchSpec(made.problems, specFile);
    if (made.tasks.length > TASKS_MAX)
      refuseBatchSpec(
        [
          {
            key: 'select',
            message: `there would be ${made.tasks.length} tasks, and ${TASKS_MAX} are the most; group them, or select less`,
          },
        ],
        specFile,
      );
    const tasks = shard === undefined ? made.tasks : isInBatchShard(made.tasks, shard);
    return { tasks, total: made.tasks.length, tree, unmatched };
  } finally {
    stop.close();
  }
}

type Where = { readonly repository: Repository; readonly git: Git; readonly io: Io };

async function readBatchSources(specFile: SpecFile, where: Where, signal: AbortSignal): Promise<Sources> {
  const { select } = specFile.spec;
  const items = await readListedItems(specFile, where, signal);
  const changed = select.diff === undefined ? undefined : await listItemsChangedIn(where.git, select.diff, signal);
  if (changed !== undefined && isItemSourceProblem(changed)) {
    refuseBatchSpec(changed, specFile);
    return { items, changed: undefined };
  }
  return { items, changed };
}

async function readListedItems(
  specFile: SpecFile,
  { repository, io }: Where,
  signal: AbortSignal,
): Promise<readonly ListedItem[] | undefined> {
  const { list, command } = specFile.spec.select;
  if (list === undefined && command === undefined) return undefined;
  const { items, problems } =
    command === undefined
      ? await readBatchList(list ?? '-', specFile, io)
      : await listItemsByCommand({ command, cwd: repository.top, env: childProcessEnvironment(io.env) }, signal);
  refuseBatchSpec(problems, specFile);
  return items;
}

/** A list's path is relative to the spec that names it. */
async function readBatchList(list: string, { file, place }: SpecFile, io: Io) {
  const key = 'select.files';
  if (list === '-') return parseBatchItems((await buffer(io.stdin)).toString('utf8'), { name: 'standard input', key });
  const path = resolve(io.cwd, dirname(file), list);
  const bytes = await requireOwnFile({ path, bytesMax: LIST_BYTES_MAX }, ({ kind, problem, fix }) => {
    const isGlob = kind === 'missing' && /[*?[{]/.test(list);
    return `${place(key)}: the list ${list} ${problem}; ${isGlob ? `globs are a list: files: ["${list}"]` : fix}`;
  });
  return parseBatchItems(bytes.toString('utf8'), { name: relative(io.cwd, path), key });
}

async function readBatchOwners(git: Git, tree: Tree, signal: AbortSignal): Promise<Owners> {
  const file = CODEOWNERS_PATHS.map((path) => tree.get(path)).find((found) => found !== undefined);
  if (file === undefined) return [];
  for await (const [, text] of readItemTexts(git, [file], signal)) return parseCodeowners(text);
  return [];
}

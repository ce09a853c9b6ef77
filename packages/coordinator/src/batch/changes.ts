// Converts changes between data and commits, many with one git process, so that they can be stored between runs.

import type { KnownResult } from '../run/execute.ts';
import type { Git } from '../git/git.ts';
import type { CachedChange, CacheEntry } from './cache.ts';

const COMMITS_AT_ONCE = 100;
const BLOBS_BYTES_MAX = 64 * 1024 * 1024;
const ABSENT = '000000';
const GITLINK = '160000';

export type ChangeContext = { readonly git: Git; readonly run: string; readonly base: string };

/** Commits each change on the base, to the branch that its task would have made. */
export async function commitCachedChanges(
  entries: ReadonlyMap<string, CacheEntry>,
  place: ChangeContext,
): Promise<ReadonlyMap<string, KnownResult>> {
  const { git, run, base } = place;
  const changing = [...entries].filter(([, { changes }]) => changes.length > 0);
  for (let from = 0; from < changing.length; from += COMMITS_AT_ONCE) {
    const parts = changing
      .slice(from, from + COMMITS_AT_ONCE)
      .map(([task, entry]) => cachedChangeAsImport(task, entry, place));
    // Forced, because a process before a crash may have created the branch already.
    await git(['fast-import', '--quiet', '--force'], { input: Buffer.concat(parts) });
  }
  const commits = changing.length === 0 ? new Map<string, string>() : await listBatchTaskBranches(git, run);
  return new Map(
    [...entries].map(([task, { changes, summary }]) => {
      const commit = changes.length === 0 ? undefined : commits.get(task);
      if (changes.length > 0 && commit === undefined) throw new Error(`${task} was not put on ${base}`);
      const files = changes.map(({ path }) => path);
      return [task, { files, summary, ...(commit !== undefined && { commit }) }];
    }),
  );
}

function cachedChangeAsImport(task: string, { changes, summary }: CacheEntry, { run, base }: ChangeContext): Buffer {
  const message = Buffer.from(`${task}\n\n${summary}\n`);
  const parts = [
    Buffer.from(`commit refs/heads/drover/${run}/${task}\ncommitter drover <drover@localhost> 0 +0000\n`),
    ...fastImportData(message),
    Buffer.from(`from ${base}\n`),
    ...changes.flatMap(({ path, after }) =>
      after === undefined
        ? [Buffer.from(`D ${quotedImportPath(path)}\n`)]
        : [
            Buffer.from(`M ${after.mode} inline ${quotedImportPath(path)}\n`),
            ...fastImportData(Buffer.from(after.content, 'base64')),
          ],
    ),
  ];
  return Buffer.concat(parts);
}

function fastImportData(bytes: Buffer): readonly Buffer[] {
  return [Buffer.from(`data ${bytes.length}\n`), bytes, Buffer.from('\n')];
}

/** Quotes like git; bytes above ASCII stay as they are. */
function quotedImportPath(path: string): string {
  return `"${path.replaceAll(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"`;
}

/** Branches that the workers of a run left, by task. */
export async function listBatchTaskBranches(git: Git, run: string): Promise<ReadonlyMap<string, string>> {
  const prefix = `refs/heads/drover/${run}/`;
  const { out } = await git(['for-each-ref', '--format=%(objectname) %(refname)', prefix]);
  const lines = out.split('\n').filter((line) => line !== '');
  return new Map(
    lines.map((line) => {
      const [commit = '', name = ''] = line.split(' ');
      return [name.slice(prefix.length), commit];
    }),
  );
}

/** The changes of each commit. A commit with a link to another repository is left out. */
export async function* readCommittedChanges(
  git: Git,
  commits: readonly string[],
): AsyncGenerator<readonly [commit: string, changes: readonly CachedChange[]]> {
  for (let from = 0; from < commits.length; from += COMMITS_AT_ONCE) {
    const chunk = commits.slice(from, from + COMMITS_AT_ONCE);
    const input = chunk.map((commit) => `${commit}\n`).join('');
    const args = ['diff-tree', '--stdin', '-r', '-z', '--raw', '--no-renames', '--no-abbrev'];
    const { out } = await git(args, { input, encoding: 'latin1' });
    const raw = rawBatchChanges(out);
    const blobs = [...raw.values()].flat().filter(({ mode }) => mode !== ABSENT && mode !== GITLINK);
    const contents = await readCachedContents(git, [...new Set(blobs.map(({ blob }) => blob))]);
    for (const [commit, changes] of raw) {
      const whole = changes.map((change) => wholeBatchChange(change, contents));
      if (whole.every((change) => change !== undefined)) yield [commit, whole];
    }
  }
}

type Raw = { readonly path: string; readonly before: string; readonly mode: string; readonly blob: string };

// Parses the commit, then for each path ":<old mode> <new mode> <old blob> <new blob> <status>" and the path.
function rawBatchChanges(out: string): ReadonlyMap<string, readonly Raw[]> {
  const found = new Map<string, Raw[]>();
  const fields = out.split('\0');
  let own: Raw[] = [];
  for (let at = 0; at < fields.length; at++) {
    const field = fields[at] ?? '';
    if (field.startsWith(':')) {
      const [oldMode = '', mode = '', oldBlob = '', blob = ''] = field.slice(1).split(' ');
      const path = Buffer.from(fields[(at += 1)] ?? '', 'latin1').toString('utf8');
      own.push({ path, before: oldMode === ABSENT ? '' : oldBlob, mode, blob });
    } else if (field.trim() !== '') {
      own = [];
      found.set(field.trim(), own);
    }
  }
  return found;
}

function wholeBatchChange(
  { path, before, mode, blob }: Raw,
  contents: ReadonlyMap<string, string>,
): CachedChange | undefined {
  const old = before === '' ? {} : { before };
  if (mode === ABSENT) return { path, ...old };
  const content = contents.get(blob);
  return content === undefined ? undefined : { path, ...old, after: { mode, content } };
}

/** File contents in base64, by object id; files that are too large are left out. */
async function readCachedContents(git: Git, blobs: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const ids = (list: readonly string[]) => list.map((blob) => `${blob}\n`).join('');
  const { out: sizes } = await git(['cat-file', '--batch-check=%(objectname) %(objectsize)'], { input: ids(blobs) });
  let bytes = 0;
  const wanted = sizes
    .trim()
    .split('\n')
    .flatMap((line) => {
      const [blob = '', size = ''] = line.split(' ');
      if (blob === '' || bytes + Number(size) > BLOBS_BYTES_MAX) return [];
      bytes += Number(size);
      return [blob];
    });
  if (wanted.length === 0) return new Map();
  const { out } = await git(['cat-file', '--batch'], { input: ids(wanted), encoding: 'latin1' });
  const found = new Map<string, string>();
  for (let at = 0; at < out.length;) {
    const end = out.indexOf('\n', at);
    const [blob = '', , size = ''] = out.slice(at, end).split(' ');
    const from = end + 1;
    found.set(blob, Buffer.from(out.slice(from, from + Number(size)), 'latin1').toString('base64'));
    at = from + Number(size) + 1;
  }
  return found;
}

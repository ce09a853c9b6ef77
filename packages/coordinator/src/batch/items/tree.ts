// The files of a commit: paths and contents. Nothing is read from the checkout, since tasks begin from the commit.

import type { Git } from '../../git/git.ts';

const CHUNK_BYTES_MAX = 16 * 1024 * 1024;
/** Larger files are not searched. */
const LOOKED_INTO_BYTES_MAX = 4 * 1024 * 1024;

export type TreeFile = {
  readonly path: string;
  readonly blob: string; // object id: equal for equal content
  readonly mode: string;
  readonly bytes: number;
};

export type Tree = ReadonlyMap<string, TreeFile>; // by path

export async function readItemTree(git: Git, commit: string, signal: AbortSignal): Promise<Tree> {
  const { out } = await git(['ls-tree', '-r', '-z', '-l', '--full-tree', commit], { signal });
  const files = out.split('\0').flatMap((entry): [string, TreeFile][] => {
    const [, mode = '', blob = '', size = '', path = ''] = /^(\d+) blob ([0-9a-f]+) +(\d+)\t([^]+)$/.exec(entry) ?? [];
    return path === '' ? [] : [[path, { path, blob, mode, bytes: Number(size) }]];
  });
  return new Map(files);
}

/** The files that a task can work on, which excludes links. */
export function isPlainItem({ mode }: TreeFile): boolean {
  return mode === '100644' || mode === '100755';
}

/** Reads the given files. A file that is too large is left out. */
export async function* readItemTexts(
  git: Git,
  files: readonly TreeFile[],
  signal: AbortSignal,
): AsyncGenerator<readonly [path: string, text: string]> {
  const small = files.filter(({ bytes }) => bytes <= LOOKED_INTO_BYTES_MAX);
  for (const chunk of chunkItems(small)) {
    const input = chunk.map(({ blob }) => `${blob}\n`).join('');
    const { out } = await git(['cat-file', '--batch'], { input, encoding: 'latin1', signal });
    let at = 0;
    for (const { path } of chunk) {
      const end = out.indexOf('\n', at);
      const bytes = Number(out.slice(at, end).split(' ')[2]);
      if (end < 0 || !Number.isInteger(bytes)) throw new Error(`git gave no content for ${path}`);
      yield [path, Buffer.from(out.slice(end + 1, end + 1 + bytes), 'latin1').toString('utf8')];
      at = end + 1 + bytes + 1;
    }
  }
}

function* chunkItems(files: readonly TreeFile[]): Generator<readonly TreeFile[]> {
  let chunk: TreeFile[] = [];
  let bytes = 0;
  for (const file of files) {
    if (bytes + file.bytes > CHUNK_BYTES_MAX && chunk.length > 0) {
      yield chunk;
      chunk = [];
      bytes = 0;
    }
    chunk.push(file);
    bytes += file.bytes;
  }
  if (chunk.length > 0) yield chunk;
}

// Where items come from beside globs: a list, a command's output, a range of git's.
//
// A list and an output are paths, each ended by NUL or, if there is none, by a newline; or JSON lines, each
// a path or {"path" or "files", "id"?, "vars"?}.

import { DroverError } from '@drover/core/errors';
import { isJsonObject, type Json } from '@drover/protocol/json';
import { newId } from '@drover/core/ids';
import { runChildProcess } from '@drover/core/tools/process/child';
import type { Git } from '../../git/git.ts';
import type { ListedItem } from './select.ts';
import type { SpecProblem } from './spec.ts';

const COMMAND_MS_MAX = 10 * 60_000;
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
const COMPLAINT_CHARS_MAX = 2_000;
const KEYS = ['path', 'files', 'id', 'vars'];

export type Listing = { readonly items: readonly ListedItem[]; readonly problems: readonly SpecProblem[] };

/** `name`: the name of the source, such as list.txt, standard input or the command. */
export function parseBatchItems(text: string, { name, key }: { readonly name: string; readonly key: string }): Listing {
  const isNul = text.includes('\0');
  const entries = text.split(isNul ? '\0' : /\r?\n/).map((entry, at) => ({ entry, where: `${name}:${at + 1}` }));
  const items: ListedItem[] = [];
  const problems: SpecProblem[] = [];
  for (const { entry, where } of entries) {
    if (entry.trim() === '') continue;
    const read = !isNul && /^\s*["{]/.test(entry) ? parseJsonItem(entry) : { files: [tidyItemPath(entry)] };
    if (typeof read === 'string') problems.push({ key, message: `${where}: ${read}` });
    else items.push({ ...read, where });
  }
  return { items, problems };
}

function parseJsonItem(line: string): Omit<ListedItem, 'where'> | string {
  const value = parseItemLine(line);
  if (typeof value === 'string') return { files: [tidyItemPath(value)] };
  if (value === undefined || !isJsonObject(value)) return 'this is neither a path nor JSON of an item';
  const unknown = Object.keys(value).find((key) => !KEYS.includes(key));
  if (unknown !== undefined) return `an item has no '${unknown}'; known are ${KEYS.join(', ')}`;
  const { path, files = path === undefined ? undefined : [path], id, vars = {} } = value;
  if (!Array.isArray(files) || files.length === 0 || !files.every((file) => typeof file === 'string' && file !== ''))
    return 'an item needs "path", or "files" as a list of paths';
  if (id !== undefined && typeof id !== 'string') return 'the "id" of an item must be text';
  if (!isJsonObject(vars) || !Object.values(vars).every((each) => typeof each === 'string'))
    return 'the "vars" of an item must be texts by their names';
  const texts = vars as Record<string, string>;
  return { files: files.map((file) => tidyItemPath(String(file))), vars: texts, ...(id !== undefined && { id }) };
}

function parseItemLine(line: string): Json | undefined {
  try {
    return JSON.parse(line) as Json;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function tidyItemPath(path: string): string {
  return path.replace(/^(?:\.\/)+/, '');
}

export type Command = {
  readonly command: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
};

export async function listItemsByCommand({ command, cwd, env }: Command, signal: AbortSignal): Promise<Listing> {
  const key = 'select.command';
  const out: Buffer[] = [];
  let bytes = 0;
  let complaint = '';
  const enough = new AbortController();
  const child = { file: 'bash', args: ['-c', command], cwd, env, callId: newId('call'), timeoutMs: COMMAND_MS_MAX };
  const end = await runChildProcess(
    {
      ...child,
      onStdout: (chunk) => {
        bytes += chunk.length;
        if (bytes > OUTPUT_BYTES_MAX) enough.abort();
        else out.push(Buffer.from(chunk));
        return undefined;
      },
      onStderr: (chunk) => {
        complaint = `${complaint}${chunk.toString()}`.slice(-COMPLAINT_CHARS_MAX);
        return undefined;
      },
    },
    AbortSignal.any([signal, enough.signal]),
  );
  const failed = (how: string): Listing => {
    const said = complaint.trim();
    return { items: [], problems: [{ key, message: `the command ${how}${said === '' ? '' : `: ${said}`}` }] };
  };
  if (bytes > OUTPUT_BYTES_MAX) return failed(`printed more than ${OUTPUT_BYTES_MAX / 1024 / 1024} MB`);
  if (end.endedBy === 'timeout') return failed(`took longer than ${COMMAND_MS_MAX / 60_000} minutes`);
  if (end.exitCode !== 0) return failed(`fails (${end.exitCode ?? end.signal ?? end.endedBy})`);
  return parseBatchItems(Buffer.concat(out).toString('utf8'), { name: 'the command', key });
}

/** The paths that differ in a range, or the problem that git reports. */
export async function listItemsChangedIn(
  git: Git,
  range: string,
  signal: AbortSignal,
): Promise<readonly string[] | readonly [SpecProblem]> {
  const problem = (message: string): readonly [SpecProblem] => [{ key: 'select.diff', message }];
  if (range.startsWith('-')) return problem(`'${range}' is no range; write it like main...HEAD`);
  try {
    const args = ['diff', '--name-only', '-z', '--no-renames', '--no-ext-diff', '--diff-filter=d'];
    const { out } = await git([...args, '--end-of-options', range, '--'], { signal });
    return out.split('\0').filter((path) => path !== '');
  } catch (error) {
    if (!(error instanceof DroverError)) throw error;
    return problem(`git does not know '${range}'; fetch it first, or write it like main...HEAD`);
  }
}

export function isItemSourceProblem(
  found: readonly string[] | readonly [SpecProblem],
): found is readonly [SpecProblem] {
  return typeof found[0] === 'object';
}

// Runs ripgrep and reads its lines until the caller has enough.
//
// ripgrep respects the project's ignore files. Its --glob would override them, so a pattern is passed as a file
// type, which matches names only. This module matches the folders of the pattern.

import { stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, matchesGlob } from 'node:path';
import { ToolError } from '../../errors.ts';
import { textOf } from '../output/bytes.ts';
import { runChild } from '../process/child.ts';
import { Capture } from '../output/capture.ts';
import { withNearNames } from '../files/content.ts';
import type { Place } from '../files/paths.ts';
import { outputFile, type ToolContext } from '../tool.ts';

const TIMEOUT_MS = 60_000;
const LINE_BYTES_MAX = 16_000;

const COMMON = [
  '--no-config',
  '--no-messages',
  '--hidden',
  '--no-require-git',
  '--color=never',
  '--glob=!.git',
  '--sort=path', // makes the output deterministic
];

/** Calls `onLine` for each line of output until it returns false. Paths are printed as `shown` in a Place. */
export async function askRipgrep(
  question: { readonly args: readonly string[]; readonly place: Place },
  context: ToolContext,
  onLine: (line: string) => boolean,
): Promise<void> {
  const file = await ripgrepFile();
  const enough = new AbortController();
  const lines = new LineSplitter((line) => {
    if (!enough.signal.aborted && !onLine(line.replace(/^\.\//, ''))) enough.abort();
  });
  const problem = new Capture(outputFile(context));
  const { real, shown } = question.place;
  const leftOut = (context.ignore ?? []).map((pattern) => `--glob=!${pattern}`);
  await stat(real).catch(async (error: unknown) => {
    throw await withNearNames(error, question.place);
  });
  const end = await runChild(
    {
      file,
      // Prefix with "./": a name may begin like an option.
      args: [
        ...COMMON,
        ...leftOut,
        ...question.args,
        '--',
        isAbsolute(shown) ? shown : `./${shown === '.' ? '' : shown}`,
      ],
      cwd: context.cwd,
      env: context.env,
      callId: context.callId,
      timeoutMs: TIMEOUT_MS,
      onStdout: (chunk) => lines.add(chunk),
      onStderr: (chunk) => problem.write(chunk),
    },
    AbortSignal.any([context.signal, enough.signal]),
  );
  lines.end();
  if (enough.signal.aborted) return;
  if (end.endedBy === 'abort') throw new ToolError('interrupted');
  if (end.endedBy === 'timeout') throw new ToolError(`stopped after ${TIMEOUT_MS / 1_000} s: narrow the search`);
  if (end.signal !== undefined) throw new ToolError(`the search was ended by ${end.signal}`);
  // Unreadable files make ripgrep fail without a message. Its other matches are still valid.
  const { text } = await problem.finish();
  if (end.exitCode !== 0 && text !== '') throw new ToolError(text.trim().replace(/^rg: /, ''));
}

/** Returns the path of the ripgrep that comes with drover. */
export async function ripgrepFile(): Promise<string> {
  return (await import('@vscode/ripgrep')).rgPath;
}

/** A pattern without a folder matches names in any folder. */
export type NamePattern = { readonly args: readonly string[]; readonly matches: (path: string) => boolean };

export function namePattern(pattern: string): NamePattern {
  const plain = pattern.replace(/^(\.?\/)+/, '');
  const folders = dirname(plain);
  const name = basename(plain);
  const isAnyName = /^\*+$/.test(name);
  return {
    args: isAnyName ? [] : [`--type-add=wanted:${name}`, '--type=wanted'],
    matches: folders === '.' || folders === '**' ? () => true : (path) => matchesGlob(path, plain),
  };
}

class LineSplitter {
  readonly #onLine: (line: string) => void;
  #parts: Buffer[] = [];
  #bytes = 0;

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  add(chunk: Buffer): undefined {
    for (let at = 0; at < chunk.length;) {
      const found = chunk.indexOf(10, at);
      const end = found === -1 ? chunk.length : found;
      // Copy: the chunk is released after this call. Long lines are truncated.
      if (this.#bytes < LINE_BYTES_MAX) this.#parts.push(Buffer.from(chunk.subarray(at, end)));
      this.#bytes += end - at;
      if (found !== -1) this.end();
      at = end + 1;
    }
  }

  end(): void {
    if (this.#bytes > 0) this.#onLine(textOf(Buffer.concat(this.#parts)));
    this.#parts = [];
    this.#bytes = 0;
  }
}

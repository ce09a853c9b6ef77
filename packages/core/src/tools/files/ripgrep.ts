// Runs ripgrep and reads its lines until the caller has enough.
//
// ripgrep respects the project's ignore files. Its --glob would override them, so a pattern is passed as a file
// type, which matches names only. This module matches the folders of the pattern.
//
// With a sandbox that shows ripgrep, it runs inside: a command of another session in the same folder could put a link
// in the place of a folder while it is searched.

import { stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, matchesGlob } from 'node:path';
import { quoteForSandboxShell } from '@drover/sandbox/sandbox';
import { realPathForSandbox } from '@drover/sandbox/paths';
import { ToolError } from '../../errors.ts';
import { toolOutputText } from '../output/bytes.ts';
import { newId } from '../../ids.ts';
import { type ChildEnd, runChildProcess } from '../process/child.ts';
import { gitSafeCommandEnvironment } from '../process/git-environment.ts';
import { runShell } from '../process/run-shell.ts';
import { Capture } from '../output/capture.ts';
import { withNearFileNames } from '../files/content.ts';
import type { Place } from '../files/paths.ts';
import { toolOutputFile, type ToolContext } from '../tool.ts';

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
  const { real, shown } = question.place;
  const leftOut = (context.ignore ?? []).map((pattern) => `--glob=!${pattern}`);
  const found = await stat(real).catch(async (error: unknown) => {
    throw await withNearFileNames(error, question.place);
  });
  // Reading a pipe could block until the time limit.
  if (!found.isFile() && !found.isDirectory()) throw new ToolError(`${shown} is not a regular file`);
  // Prefix with "./": a name may begin like an option.
  const start = isAbsolute(shown) ? shown : `./${shown === '.' ? '' : shown}`;
  const search: Search = { file, args: [...COMMON, ...leftOut, ...question.args, '--', start], lines };
  const signal = AbortSignal.any([context.signal, enough.signal]);
  const sandbox = isAbsolute(shown) ? undefined : context.sandbox;
  const { end, complaint } = await (sandbox?.readable.includes(file) === true
    ? ripgrepInsideSandbox(search, { ...context, sandbox, signal })
    : ripgrepOutsideSandbox(search, { ...context, signal }));
  lines.end();
  if (enough.signal.aborted) return;
  if (end.endedBy === 'abort') throw new ToolError('interrupted');
  if (end.endedBy === 'timeout') throw new ToolError(`stopped after ${TIMEOUT_MS / 1_000} s: narrow the search`);
  if (end.signal !== undefined) throw new ToolError(`the search was ended by ${end.signal}`);
  // Unreadable files make ripgrep fail without a message. Its other matches are still valid.
  if (end.exitCode !== 0 && complaint !== '') throw new ToolError(complaint.trim().replace(/^rg: /, ''));
}

type Search = { readonly file: string; readonly args: readonly string[]; readonly lines: LineSplitter };
type Searched = { readonly end: ChildEnd; readonly complaint: string };

async function ripgrepOutsideSandbox({ file, args, lines }: Search, context: ToolContext): Promise<Searched> {
  const { cwd, env, callId, signal } = context;
  const problem = new Capture(toolOutputFile(context));
  const end = await runChildProcess(
    {
      file,
      args,
      cwd,
      env,
      callId,
      timeoutMs: TIMEOUT_MS,
      onStdout: (chunk) => lines.add(chunk),
      onStderr: (chunk) => problem.write(chunk),
    },
    signal,
  );
  return { end, complaint: (await problem.finish()).text };
}

// A sandbox has one stream of output, so stderr follows stdout, behind a line that no file can hold.
async function ripgrepInsideSandbox(
  { file, args, lines }: Search,
  { cwd, env, callId, signal, sandbox }: ToolContext,
): Promise<Searched> {
  const border = newId('call');
  const complaint: string[] = [];
  let isOver = false;
  const all = new LineSplitter((line) => {
    if (isOver) complaint.push(line);
    else if (line === border) isOver = true;
    else lines.line(line);
  });
  const command = [file, ...args].map(quoteForSandboxShell).join(' ');
  const script = `{ e=$(${command} 2>&1 >&3); c=$?; } 3>&1; [ $c -lt 2 ] || printf '%s\\n%s\\n' ${border} "$e"; exit $c`;
  const place = { cwd, sandbox, callId, env: gitSafeCommandEnvironment(env) };
  const onOutput = (chunk: Buffer): undefined => all.add(chunk);
  const end = await runShell({ ...place, script, timeoutMs: TIMEOUT_MS, onOutput }, signal);
  all.end();
  return { end, complaint: complaint.join('\n') };
}

/** Returns the path of the ripgrep that comes with drover. */
export async function ripgrepFile(): Promise<string> {
  return realPathForSandbox((await import('@vscode/ripgrep')).rgPath);
}

/** A pattern without a folder matches names in any folder. */
export type NamePattern = { readonly args: readonly string[]; readonly matches: (path: string) => boolean };

export function ripgrepNamePattern(pattern: string): NamePattern {
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

  line(text: string): void {
    this.#onLine(text);
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
    if (this.#bytes > 0) this.#onLine(toolOutputText(Buffer.concat(this.#parts)));
    this.#parts = [];
    this.#bytes = 0;
  }
}

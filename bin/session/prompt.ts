// Reads a prompt from the command line, a file or standard input. It is UTF-8 and not empty.

import { resolve } from 'node:path';
import { UsageError } from '@drover/core/errors';
import { MB, requireOwnFile } from '@drover/core/files/own-file';
import type { Input } from '../io.ts';
import { decodeUtf8 } from '../start/settings.ts';

const PROMPT_BYTES_MAX = 10 * MB;

export type PromptSource = {
  readonly word: string | undefined; // as typed; "-" stands for standard input
  readonly file: string | undefined;
  readonly cwd: string;
  readonly stdin: Input;
};

export async function readPrompt({ word, file, cwd, stdin }: PromptSource): Promise<string> {
  if (word !== undefined && file !== undefined) {
    throw new UsageError('give the prompt on the command line or with --prompt-file, not both');
  }
  if (file === '-' || word === '-') return checkPromptBytes(await readPromptFromStdin(stdin), 'standard input');
  if (file !== undefined) return checkPromptBytes(await readPromptFile(resolve(cwd, file)), file);
  if (word === undefined) {
    throw new UsageError(
      'no prompt given; run drover exec "fix the failing test", or pass - to read it from standard input',
    );
  }
  if (word.trim() === '') throw new UsageError('the prompt is empty; say what the agent should do');
  return word;
}

async function readPromptFile(path: string): Promise<Uint8Array> {
  return requireOwnFile(
    { path, bytesMax: PROMPT_BYTES_MAX },
    ({ problem, fix }) => `the prompt file ${path} ${problem}; ${fix}`,
  );
}

async function readPromptFromStdin(stdin: Input): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stdin as AsyncIterable<Uint8Array | string>) {
    const piece = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    chunks.push(piece);
    bytes += piece.length;
    if (bytes > PROMPT_BYTES_MAX) break;
  }
  return Buffer.concat(chunks);
}

function checkPromptBytes(bytes: Uint8Array, source: string): string {
  if (bytes.length > PROMPT_BYTES_MAX)
    throw new UsageError(`the prompt from ${source} is larger than 10 MB; shorten it`);
  const text = decodeUtf8(bytes);
  if (text === undefined) throw new UsageError(`the prompt from ${source} is not UTF-8 text; convert it to UTF-8`);
  if (text.trim() === '') throw new UsageError(`the prompt from ${source} is empty; say what the agent should do`);
  return text;
}

// The files of a folder that a command may change: those that are not ignored, up to a limit.

import { isAbsolute, relative } from 'node:path';
import { ToolError } from '@drover/core/errors';
import { newId } from '@drover/core/ids';
import { askRipgrep } from '@drover/core/tools/files/ripgrep';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import type { Io } from '../io.ts';
import type { Settings } from '../start/settings.ts';

const FILES_MAX = 20_000;

export type Folder = {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly ignore: readonly string[];
};

/** The folder of a chat. Drover's own state, if it is in there, is excluded. */
export function chatFolder(cwd: string, io: Io, { ignore, home }: Pick<Settings, 'ignore' | 'home'>): Folder {
  const below = relative(cwd, home);
  const isInside = below !== '' && !below.startsWith('..') && !isAbsolute(below);
  return { cwd, env: childProcessEnvironment(io.env), ignore: isInside ? [...ignore, `/${below}`] : ignore };
}

/** Paths relative to the folder, sorted. Respects ignore files; reads up to a number of paths. */
export async function listChatFiles({ cwd, env, ignore }: Folder, most = FILES_MAX): Promise<readonly string[]> {
  const found: string[] = [];
  const context = { cwd, env, ignore, callId: newId('call'), outputFolder: cwd, signal: new AbortController().signal };
  try {
    await askRipgrep({ args: ['--files'], place: { real: cwd, shown: '.' } }, context, (path) => {
      found.push(path);
      return found.length < most;
    });
  } catch (error) {
    // A folder that cannot be listed has no files that could be copied.
    if (!(error instanceof ToolError)) throw error;
  }
  return found;
}

// drover serve --open: opens the page in a browser.
//
// The address lets its reader in, and other users of the machine see the arguments of a process. So the program gets
// the path of a file that only the user can read, and the file leads to the address. It is removed when the server
// ends.

import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import { errorCodeOf } from '../start/settings.ts';
import { type Io, printError } from '../io.ts';

export type BrowserPlace = { readonly io: Io; readonly home: string };

/** Returns what removes the file. If no program opens it, says so on stderr. */
export async function openBrowser(url: string, { io, home }: BrowserPlace): Promise<AsyncDisposable> {
  await mkdir(home, { recursive: true });
  const path = join(home, `open-${randomUUID()}.html`);
  await writeFile(path, leadingPage(url), { mode: 0o600, flag: 'wx' });
  const problem = await openWith(browserPrograms(io), pathToFileURL(path).href, io);
  if (problem !== undefined) await printError(io, problem);
  return { [Symbol.asyncDispose]: () => rm(path, { force: true }) };
}

function leadingPage(url: string): string {
  const head = `<meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>drover</title>`;
  return `<!doctype html>${head}<meta http-equiv="refresh" content="0; url=${url}"><a href="${url}">The page of drover</a>\n`;
}

/** The choice of the user, or what systems have: each with its arguments. */
function browserPrograms({ env }: Io): readonly (readonly string[])[] {
  const chosen = (env['BROWSER'] ?? '').split(':').map((each) => each.split(/\s+/).filter((word) => word !== ''));
  const named = chosen.filter((words) => words.length > 0);
  return named.length > 0 ? named : [['xdg-open'], ['open']];
}

/** Tries the programs in order, and returns why none opened the address. */
async function openWith(programs: readonly (readonly string[])[], url: string, io: Io): Promise<string | undefined> {
  for (const [program = '', ...args] of programs) {
    const isPlaced = args.some((each) => each.includes('%s'));
    const given = isPlaced ? args.map((each) => each.replaceAll('%s', url)) : [...args, url];
    const env = childProcessEnvironment(io.env);
    const child = spawn(program, given, { cwd: io.cwd, env, stdio: 'ignore', detached: true });
    child.unref();
    child.once('exit', (code) => {
      // A browser that stays is not waited for.
      if (code !== null && code !== 0)
        void printError(io, `${program} opened no browser (it ended with ${code}); ${REMEDY}`);
    });
    try {
      await once(child, 'spawn');
      return undefined;
    } catch (error) {
      if (!['ENOENT', 'EACCES'].includes(errorCodeOf(error))) throw error;
    }
  }
  const names = programs.map(([program]) => program).join(' or ');
  return `no browser was opened, because there is no ${names}; ${REMEDY}`;
}

const REMEDY = 'open the address above, or set BROWSER to a program that opens one';

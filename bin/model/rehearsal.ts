// Starts the scripted model in this process, for --model rehearsal/…, `drover rehearse` and the demo.

import { UsageError } from '@drover/core/errors';
import { MB, requireOwnFile } from '@drover/core/files/own-file';
import type { Script } from '@drover/rehearsal/script';
import type { Rehearsal } from '@drover/rehearsal/server';
import { errorCodeOf } from '../start/settings.ts';

// A script that answers 1,000 tasks is larger than 1 MB.
const SCRIPT_BYTES_MAX = 16 * MB;

async function readRehearsalScript(path: string): Promise<string> {
  const bytes = await requireOwnFile(
    { path, bytesMax: SCRIPT_BYTES_MAX },
    ({ kind, problem, fix }) => `${problem}; ${kind === 'missing' ? 'name a script that exists' : fix}`,
  );
  return bytes.toString('utf8');
}

/** Starts a script from a path, or a given script. */
export async function openRehearsal(source: string | Script, port: number | undefined): Promise<Rehearsal> {
  const { startRehearsal } = await import('@drover/rehearsal/server');
  const { ScriptError } = await import('@drover/rehearsal/script');
  try {
    const script =
      typeof source === 'string'
        ? await (await import('@drover/rehearsal/load')).loadRehearsalScript(source, readRehearsalScript)
        : source;
    return await startRehearsal(script, port === undefined ? {} : { port });
  } catch (error) {
    if (error instanceof ScriptError) throw new UsageError(error.message, { cause: error });
    if (errorCodeOf(error) === 'EADDRINUSE')
      throw new UsageError(`port ${port} is in use; choose another`, { cause: error });
    if (errorCodeOf(error) === 'EACCES')
      throw new UsageError(`port ${port} is not yours to use; choose another`, { cause: error });
    throw error;
  }
}

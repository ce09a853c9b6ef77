// Starts the scripted model in this process, for --model rehearsal/…, `drover rehearse` and the demo.

import { UsageError } from '@drover/core/failure';
import type { Script } from '@drover/rehearsal/script';
import type { Rehearsal } from '@drover/rehearsal/server';
import { codeOf } from '../settings.ts';

/** From a path, or from the script itself. */
export async function openRehearsal(source: string | Script, port: number | undefined): Promise<Rehearsal> {
  const { startRehearsal } = await import('@drover/rehearsal/server');
  const { ScriptError } = await import('@drover/rehearsal/script');
  try {
    const script =
      typeof source === 'string' ? await (await import('@drover/rehearsal/load')).loadScript(source) : source;
    return await startRehearsal(script, port === undefined ? {} : { port });
  } catch (error) {
    if (error instanceof ScriptError) throw new UsageError(error.message, { cause: error });
    if (codeOf(error) === 'EADDRINUSE')
      throw new UsageError(`port ${port} is in use; choose another`, { cause: error });
    if (codeOf(error) === 'EACCES')
      throw new UsageError(`port ${port} is not yours to use; choose another`, { cause: error });
    throw error;
  }
}

// Starts the scripted model in this process, for --model rehearsal/…, `drover rehearse` and the demo.

import { UsageError } from '@drover/core/failure';
import type { Rehearsal } from '@drover/rehearsal/server';
import { codeOf } from '../settings.ts';

export async function openRehearsal(path: string, port: number | undefined): Promise<Rehearsal> {
  const [{ startRehearsal }, { loadScript }, { ScriptError }] = await Promise.all([
    import('@drover/rehearsal/server'),
    import('@drover/rehearsal/load'),
    import('@drover/rehearsal/script'),
  ]);
  try {
    const script = await loadScript(path);
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

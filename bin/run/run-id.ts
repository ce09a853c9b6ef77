// Which run is meant: by its whole id, or by as much of it as no other has.

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { runJournalPath } from '@drover/coordinator/run-journal';
import { UsageError } from '@drover/core/failure';

export function runIds(home: string): readonly string[] {
  const folder = join(home, 'runs');
  return existsSync(folder) ? readdirSync(folder).filter((id) => existsSync(runJournalPath(home, id))) : [];
}

/** The run whose id this is, or begins with this; undefined where there is none. */
export function runMeant(home: string, typed: string | undefined): string | undefined {
  if (typed === undefined) return undefined;
  const found = runIds(home).filter((id) => id.startsWith(typed) || id.startsWith(`run_${typed}`));
  if (found.length > 1) throw new UsageError(`'${typed}' may be any of ${found.join(', ')}; type more of it`);
  return found[0];
}

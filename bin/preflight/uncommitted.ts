// Names the uncommitted changes that a run will not see, before the user approves anything.

import type { Repository } from '@drover/coordinator/git/repository';
import { printError, type Io } from '../io.ts';
import { textOnOneLine } from '../views/text/terminal-text.ts';

const NAMED_MAX = 5;
const PATH_COLUMNS = 60;

export async function tellUncommittedChanges({ notIncluded }: Pick<Repository, 'notIncluded'>, io: Io): Promise<void> {
  if (notIncluded.length === 0) return;
  const named = notIncluded.slice(0, NAMED_MAX).map((path) => textOnOneLine(path, PATH_COLUMNS));
  const more = notIncluded.length - named.length;
  const all = `${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  await printError(io, `the run starts from your last commit, without your uncommitted changes: ${all}`);
}

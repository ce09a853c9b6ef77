// The sentence for a state folder that cannot be written.

import { UsageError } from '@drover/core/errors';

export function stateFolderProblem(home: string, why: string, cause?: Error): UsageError {
  return new UsageError(`cannot write to ${home} (${why}); set DROVER_HOME to a folder that can be written`, {
    ...(cause !== undefined && { cause }),
  });
}

// The session of the agent that coordinates a run.

import { join } from 'node:path';
import type { Event, Place } from '@drover/protocol/events';
import { pathsDeniedIn } from '@drover/core/permission/denied-paths';
import { coordinatorRoute } from '@drover/core/task/models';
import type { RunAdmission } from '../admission/admission.ts';
import type { RunOptions } from '../run/run.ts';
import type { Planning } from './planning.ts';

export function coordinatorSession(
  options: RunOptions,
  admission: RunAdmission,
  tell: (event: Event, place: Place) => void,
): Planning['session'] {
  const { id, models, repository, env, ignore, folder, retry, policy, bus, opening } = options;
  return {
    id,
    worker: 0,
    ...coordinatorRoute(models),
    retry,
    cacheKey: id,
    ...(opening !== undefined && { opening }),
    context: {
      cwd: repository.top,
      env,
      ignore,
      outputFolder: join(folder, 'outputs', 'coordinator'),
      ...pathsDeniedIn(policy.rules, repository.top),
    },
    admission: admission.admissionFor({ worker: 0 }),
    outlet: { emit: tell, settled: () => bus.settled() },
  };
}

// Has the coordinator make a plan, and shows its work on standard error. Runs no task.

import { join } from 'node:path';
import { runPlanningOnly } from '@drover/coordinator/plan/planning';
import { watchTurnLimits } from '@drover/core/agent/limits';
import { Bus } from '@drover/core/bus';
import { newId } from '@drover/core/ids';
import { defaultRetry } from '@drover/core/model/retry';
import { EventRedaction } from '@drover/core/redaction/event-redaction';
import { coordinatorRoute } from '@drover/core/task/models';
import { modelRolesOfRun, type RunSettings } from '@drover/protocol/run';
import type { PlannedTask } from '@drover/protocol/plan';
import { NO_SERVERS } from '@drover/core/tools/served/tool-servers';
import { endAllChildProcesses } from '@drover/core/tools/process/child';
import { childProcessEnvironment } from '@drover/core/tools/process/environment';
import { chooseRunModels } from '../../model/model-roles.ts';
import { openModels } from '../../model/open-models.ts';
import { showEventsOnTerminal } from '../../terminal/show-events.ts';
import type { Io } from '../../io.ts';
import { pathsDeniedIn } from '@drover/core/permission/denied-paths';
import { openSecretRedactor } from '../../secrets/own-secrets.ts';
import { watchForStopSignal } from '../../stop.ts';
import { linesView } from '../../views/lines.ts';
import { silentView } from '../../views/silent.ts';
import type { Surrounded } from '../start-run.ts';

export type Wanted = Surrounded & { readonly run: RunSettings };

/** Returns the plan; undefined if the model answered without one. */
export async function makePlan(
  { settings, repository, run, extensions }: Wanted,
  io: Io,
): Promise<readonly PlannedTask[] | undefined> {
  // No worker is asked.
  const { plan } = modelRolesOfRun(run);
  const wanted = { ...run, models: { plan, work: plan } };
  await using opened = new AsyncDisposableStack();
  const stop = opened.adopt(
    watchForStopSignal(io, () => endAllChildProcesses('SIGKILL')),
    ({ close }) => close(),
  );
  const { models } = opened.adopt(
    await openModels(chooseRunModels(wanted, [], { settings, top: repository.top }), {
      settings,
      workers: 1,
      laneOf: undefined,
    }),
    ({ close }) => close(),
  );
  const limits = { ...run.taskLimits, ...(run.timeoutMs !== undefined && { timeoutMs: run.timeoutMs }) };
  const deadline = opened.adopt(watchTurnLimits(limits, stop.signal), (each) => each.stop());

  const id = newId('run');
  const redaction = new EventRedaction(openSecretRedactor(settings));
  const bus = new Bus({ owner: { run: id }, lastSeq: 0, pass: (event, place) => redaction.pass(event, place) });
  const view = io.stderr.isTTY === true ? linesView(io.stderr, io.env, 'asked known') : silentView;
  const shown = showEventsOnTerminal(bus.reader(), { view, person: undefined, io });
  try {
    return await runPlanningOnly(
      {
        settings: run,
        extensions,
        limits,
        servers: NO_SERVERS,
        policy: { root: repository.top, rules: settings.rules, yes: false, contained: false, workspace: false },
        warn: (message) => bus.emit({ type: 'warning', message }, { worker: 0 }),
        session: {
          id,
          worker: 0,
          ...coordinatorRoute(models),
          retry: defaultRetry,
          outlet: bus,
          ...(run.cap !== undefined && { cap: run.cap }),
          context: {
            cwd: repository.top,
            env: childProcessEnvironment(io.env),
            ignore: settings.ignore,
            outputFolder: join(settings.home, 'outputs', id),
            ...pathsDeniedIn(settings.rules, repository.top),
          },
        },
      },
      deadline.signal,
    );
  } finally {
    bus.close();
    await shown;
  }
}

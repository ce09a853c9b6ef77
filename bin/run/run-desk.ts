// The desk of a run at work: what the view that shows it can ask of it.

import { journalTail } from '@drover/core/journal/file/tail';
import type { RunControl } from '@drover/coordinator/control/run-control';
import type { Bus } from '@drover/core/bus';
import type { Redactor } from '@drover/core/redaction/redactor';
import type { JsonObject } from '@drover/protocol/json';
import type { Io } from '../io.ts';
import type { Settings } from '../start/settings.ts';
import type { Stop } from '../stop.ts';
import type { RunDesk } from '../views/view.ts';

export type DeskOptions = {
  readonly id: string;
  readonly settings: Settings;
  readonly io: Io;
  readonly control: RunControl;
  readonly bus: Bus;
  readonly redactor: Redactor;
  readonly stop: Pick<Stop, 'stop'>;
};

export function runDesk({ id, settings, io, control, bus, redactor, stop }: DeskOptions): RunDesk {
  const { home } = settings;
  return {
    control,
    bell: settings.bell,
    stop: () => stop.stop('SIGINT'),
    diff: async (task) => {
      await bus.settled();
      const [{ cleanPatch }, { withRunDiff }, { findNamedRun }] = await Promise.all([
        import('../result/diff-style.ts'),
        import('../result/run-diff.ts'),
        import('../result/run-store.ts'),
      ]);
      const run = await findNamedRun(id, io);
      return withRunDiff(run, { task, io }, async ({ text }) =>
        redactor.text(cleanPatch(await text({ form: 'patch' }))),
      );
    },
    log: async function* (who, signal): AsyncGenerator<JsonObject> {
      await bus.settled();
      const [{ readRunState }, { selectRunRecords }] = await Promise.all([
        import('../history/run.ts'),
        import('../history/run-records.ts'),
      ]);
      const run = await readRunState(home, id);
      const isWanted = selectRunRecords(run, who);
      for (const record of run.records) if (isWanted(record)) yield record;
      for await (const record of journalTail(run.path, run.readTo, signal)) if (isWanted(record)) yield record;
    },
  };
}

// Writes the reports of a run if the user asks for them: JUnit for CI systems, Markdown for people.

import { appendFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { type Result, batchResultOfTask } from '@drover/coordinator/batch/results';
import { writeBatchFileWhole } from '@drover/coordinator/batch/whole-file';
import type { KnownResult } from '@drover/coordinator/run/execute';
import type { RunSettings } from '@drover/protocol/run';
import { batchReport } from '../batch/results/report.ts';
import { formatJunit } from '../views/ci/junit.ts';
import { textOnOneLine } from '../views/text/terminal-text.ts';
import type { Companion } from './running.ts';

const NAME_COLUMNS = 80;

export type Reports = { readonly junit?: string; readonly summary?: string }; // paths

export function runReports(
  { junit, summary }: Reports,
  of: { readonly run: string; readonly settings: RunSettings },
): Companion {
  const { run, settings } = of;
  return {
    known: async () => new Map<string, KnownResult>(),
    ended: async (end, { redactor, startedAt }) => {
      const name = textOnOneLine(redactor.text(settings.goal), NAME_COLUMNS);
      const about = { run, repository: basename(settings.repository), selected: new Map() };
      const made = end.tasks.map((row) => batchResultOfTask(row, about));
      const results = redactor.value(made as never) as readonly Result[];
      const reason = end.reason === undefined ? {} : { reason: redactor.text(end.reason) };
      const head = { ...end, ...reason, batch: name, model: settings.model, run };
      if (junit !== undefined) await writeBatchFileWhole(junit, formatJunit(results, { ...head, name, at: startedAt }));
      if (summary !== undefined) await appendFile(summary, `${batchReport(head, results)}\n`);
    },
  };
}

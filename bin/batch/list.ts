// drover batch --list: prints the tasks, one per line, and runs nothing.

import { diagnosticsRedactor } from '../diagnostics.ts';
import { exitCode } from '../start/exit-code.ts';
import { type Io, print } from '../io.ts';
import { jsonViewText } from '../views/json.ts';
import { terminalColumns, textForLog, textOnOneLine } from '../views/text/terminal-text.ts';
import type { Batch } from './start-batch.ts';

export async function listBatchTasks(batches: readonly Batch[], isJson: boolean, io: Io): Promise<number> {
  const redactor = await diagnosticsRedactor(io);
  const rows = batches.flatMap(({ name, prepared }) =>
    prepared.tasks.map((task) => ({ ...(redactor.value(task as never) as typeof task), repository: name })),
  );
  const named = rows.map(({ id, repository }) => (batches.length > 1 ? `${repository}/${id}` : id));
  const width = Math.max(0, ...named.map((name) => name.length));
  const columns = terminalColumns(io.stdout);
  const lines = rows.map(({ id, repository, title, files, group, gates, prompt }, at) =>
    isJson
      ? `${jsonViewText({ task: id, repository, title, group, files, gates, prompt })}\n`
      : `${(named[at] ?? id).padEnd(width)}  ${textOnOneLine(title, columns - width - 2)}\n`,
  );
  await print(io.stdout, textForLog(lines.join(''), io.env));
  return exitCode.done;
}

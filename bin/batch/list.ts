// drover batch --list: the tasks, one a line, and nothing done.

import { exitCode } from '../exit-code.ts';
import { type Io, print } from '../io.ts';
import { columnsOf, oneLine } from '../views/terminal-text.ts';
import type { Prepared } from './prepare.ts';

export async function listTasks({ tasks }: Pick<Prepared, 'tasks'>, isJson: boolean, io: Io): Promise<number> {
  const width = Math.max(0, ...tasks.map(({ id }) => id.length));
  const columns = columnsOf(io.stdout);
  const lines = tasks.map(({ id, title, files, group, gates, prompt }) =>
    isJson
      ? `${JSON.stringify({ task: id, title, group, files, gates, prompt })}\n`
      : `${id.padEnd(width)}  ${oneLine(title, columns - width - 2)}\n`,
  );
  await print(io.stdout, lines.join(''));
  return exitCode.done;
}

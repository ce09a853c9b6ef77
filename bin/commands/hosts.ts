// drover hosts: lists the worker hosts at a queue, and what they work on.

import { UsageError } from '@drover/core/errors';
import { defineCommand, flagOption, parseNonEmpty, valueOption } from '../start/command.ts';
import { exitCode } from '../start/exit-code.ts';
import { print } from '../io.ts';
import { jsonViewText } from '../views/json.ts';
import { textStyle } from '../views/text/style.ts';
import { textCell, terminalColumns, textForLog, widthOfText } from '../views/text/terminal-text.ts';

export const hosts = defineCommand({
  options: {
    queue: valueOption('Hosts:', 'URL', 'Redis where the hosts take work (required)', parseNonEmpty),
    json: flagOption('Output:', 'Print one JSON object per line'),
  },
  examples: [
    ['drover hosts --queue redis://127.0.0.1:6379', 'List them, with their slots and tasks'],
    ['drover hosts --queue redis://127.0.0.1:6379 --json', 'The same for programs'],
  ],
  async run({ queue: url, json }, io) {
    if (url === undefined) throw new UsageError('say which hosts: drover hosts --queue redis://127.0.0.1:6379');
    const [{ checkRedisQueue: checkQueue }, { listHostsAtQueue }] = await Promise.all([
      import('@drover/hosts/line/redis'),
      import('../hosts/open-fleet.ts'),
    ]);
    const queue = { url, key: io.env['DROVER_QUEUE_KEY'] };
    await checkQueue(queue);
    const found = await listHostsAtQueue(queue);
    if (json) {
      const rows = found.map(({ id, name, version, slots, labels, work, idle }) =>
        jsonViewText({ id, name, version, slots, labels, work, ...(idle !== undefined && { idle }) }),
      );
      await print(io.stdout, rows.map((row) => `${row}\n`).join(''));
    } else if (found.length === 0) {
      await print(io.stdout, 'No hosts are there. Start one with drover worker --queue …\n');
    } else {
      const rows = found.map(({ name, version, slots, labels, work, idle }) => [
        name,
        version,
        `${work.length}/${slots}`,
        labels.join(', '),
        idle === undefined ? work.map(({ task }) => task).join(', ') : `none: ${idle}`,
      ]);
      const style = textStyle(io.stdout, io.env);
      await print(
        io.stdout,
        textForLog(
          hostsTable(rows, terminalColumns(io.stdout), (text) => style('dim', text)),
          io.env,
        ),
      );
    }
    return exitCode.done;
  },
});

const HEADS = ['host', 'drover', 'busy', 'labels', 'tasks'];

function hostsTable(rows: readonly (readonly string[])[], columns: number, dim: (text: string) => string): string {
  const shown = HEADS.map((_, at) => at).filter((at) => rows.some((row) => row[at] !== ''));
  const width = (at: number) => Math.max(...[HEADS, ...rows].map((row) => widthOfText(row[at] ?? '')));
  const line = (row: readonly string[]) => {
    const cells = shown.map((at) => {
      const text = row[at] ?? '';
      return at === shown.at(-1) ? text : text + ' '.repeat(Math.max(0, width(at) - widthOfText(text)));
    });
    return textCell(cells.join('  ').trimEnd(), columns);
  };
  return [dim(line(HEADS)), ...rows.map(line), ''].join('\n');
}

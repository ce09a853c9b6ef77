// drover merge [run]: delivers what has landed, after the run.

import { taskRowsOfState } from '@drover/coordinator/view/state';
import { UsageError } from '@drover/core/errors';
import { offerIdCompletions } from '../history/id.ts';
import { printError, printLine, printJsonLine } from '../io.ts';
import { deliverResultLater } from '../result/deliver-later.ts';
import { findNamedRun } from '../result/run-store.ts';
import { defineCommand, flagOption } from '../start/command.ts';
import { exitCode } from '../start/exit-code.ts';
import { runOptions } from '../run/run-options.ts';
import { reportDeliveredLines } from '../views/report.ts';
import { textStyle } from '../views/text/style.ts';
import { cleanText, terminalColumns } from '../views/text/terminal-text.ts';

export const merge = defineCommand({
  word: {
    name: 'run',
    about: 'Run: its id or a unique prefix (default: the newest run of this repository)',
    required: false,
    offered: offerIdCompletions,
  },
  options: {
    deliver: { ...runOptions.deliver, about: 'How to deliver what has landed (default: merge)' },
    branch: {
      ...runOptions.branch,
      about: 'Name of the branch, with --deliver branch (default: the one of the run)',
    },
    json: flagOption('Output:', 'Print what was delivered as one JSON object'),
  },
  examples: [
    ['drover merge', 'Merge what the newest run has landed into the branch that it began on'],
    ['drover merge 1a2b3c --deliver patch', 'Write it as patches'],
    ['drover merge 1a2b3c --deliver branch --branch try-it', 'Put it on a branch of this name'],
  ],
  async run({ word, deliver = 'merge', branch, json }, io) {
    if (branch !== undefined && deliver !== 'branch')
      throw new UsageError(`--branch names the branch of --deliver branch; with --deliver ${deliver} leave it out`);
    const run = await findNamedRun(word, io);
    const failure = run.state.end?.failure;
    const delivered = await deliverResultLater(run, { deliver, branch }, io);
    if (failure?.kind === 'gate.failed')
      await printError(io, `what was delivered does not pass the gate '${failure.command}'`);
    if (json) await printJsonLine(io, { run: run.id, delivered });
    else {
      const paper = { columns: terminalColumns(io.stdout), style: textStyle(io.stdout, io.env) };
      const next = delivered.next === undefined ? [] : [`Take it over with: ${cleanText(delivered.next)}`];
      await printLine(
        io,
        `${[...reportDeliveredLines({ delivered, tasks: taskRowsOfState(run.state) }, paper), ...next].join('\n')}\n`,
      );
    }
    return exitCode.done;
  },
});

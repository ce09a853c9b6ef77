// drover merge [run]: delivers what has landed, after the run.

import { rowsOf } from '@drover/coordinator/view/state';
import { UsageError } from '@drover/core/errors';
import { offeredIds } from '../history/id.ts';
import { complain, tell, tellJson } from '../io.ts';
import { deliverLater } from '../result/deliver-later.ts';
import { runToChange } from '../result/run-store.ts';
import { command, flag } from '../start/command.ts';
import { exitCode } from '../start/exit-code.ts';
import { runOptions } from '../run/run-options.ts';
import { deliveredLines } from '../views/report.ts';
import { styleFor } from '../views/text/style.ts';
import { clean, columnsOf } from '../views/text/terminal-text.ts';

export const merge = command({
  word: {
    name: 'run',
    about: 'Run: its id or a unique prefix (default: the newest run of this repository)',
    required: false,
    offered: offeredIds,
  },
  options: {
    deliver: { ...runOptions.deliver, about: 'How to deliver what has landed (default: merge)' },
    branch: {
      ...runOptions.branch,
      about: 'Name of the branch, with --deliver branch (default: the one of the run)',
    },
    json: flag('Output:', 'Print what was delivered as one JSON object'),
  },
  examples: [
    ['drover merge', 'Merge what the newest run has landed into the branch that it began on'],
    ['drover merge 1a2b3c --deliver patch', 'Write it as patches'],
    ['drover merge 1a2b3c --deliver branch --branch try-it', 'Put it on a branch of this name'],
  ],
  async run({ word, deliver = 'merge', branch, json }, io) {
    if (branch !== undefined && deliver !== 'branch')
      throw new UsageError(`--branch names the branch of --deliver branch; with --deliver ${deliver} leave it out`);
    const run = await runToChange(word, io);
    const failure = run.state.end?.failure;
    const delivered = await deliverLater(run, { deliver, branch }, io);
    if (failure?.kind === 'gate.failed')
      await complain(io, `what was delivered does not pass the gate '${failure.command}'`);
    if (json) await tellJson(io, { run: run.id, delivered });
    else {
      const paper = { columns: columnsOf(io.stdout), style: styleFor(io.stdout, io.env) };
      const next = delivered.next === undefined ? [] : [`Take it over with: ${clean(delivered.next)}`];
      await tell(io, `${[...deliveredLines({ delivered, tasks: rowsOf(run.state) }, paper), ...next].join('\n')}\n`);
    }
    return exitCode.done;
  },
});

// drover retry [run] [task…]: reopens failed tasks in the journal of their run, and resumes it.

import { offerIdCompletions } from '../history/id.ts';
import { offerTaskCompletions } from '../history/run-records.ts';
import { tasksToRetry } from '../result/retried-tasks.ts';
import { findNamedRun } from '../result/run-store.ts';
import { runOptions, untypedRunArgs } from '../run/run-options.ts';
import { agentOptions } from '../session/agent-options.ts';
import { defineCommand } from '../start/command.ts';

const { view: _, cwd: __, gate: ___, ...shared } = agentOptions;
const { view, result, junit, summary, workers, threads, 'allow-partial': allowPartial } = runOptions;

export const retry = defineCommand({
  word: {
    name: 'run',
    about: 'Run: its id or a unique prefix (default: the newest run of this repository)',
    required: false,
    offered: offerIdCompletions,
  },
  second: {
    name: 'task',
    about: 'Retry these tasks, and what waits for them (default: all that failed)',
    required: false,
    many: true,
    offered: offerTaskCompletions,
  },
  options: {
    ...shared,
    timeout: { ...shared.timeout, about: 'Time limit, such as 30m, in total since the run began' },
    budget: { ...shared.budget, about: 'Maximum to spend, such as 5usd, in total since the run began' },
    view,
    result,
    junit,
    summary,
    workers: { ...workers, group: 'Limits:', about: 'Number of tasks to run at once (default: as before)' },
    threads: { ...threads, group: 'Limits:' },
    'allow-partial': allowPartial,
  },
  examples: [
    ['drover retry', 'Try everything that failed in the newest run again'],
    ['drover retry 1a2b3c billing docs', 'Try two tasks again'],
    ['drover retry 1a2b3c --model openai/gpt-5', 'Try again with another model'],
  ],
  async run({ word, second, others, ...args }, io) {
    const kept = await findNamedRun(word, io);
    const typed = [...(second === undefined ? [] : [second]), ...others];
    const { resumeRun } = await import('../run/resume-run.ts');
    return resumeRun(
      { ...untypedRunArgs(), ...args },
      { id: kept.id, kept, retry: (run) => tasksToRetry(run, typed) },
      io,
    );
  },
});

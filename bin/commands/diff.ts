// drover diff [run] [task]: what a run or one of its tasks changed, landed or not.

import { taskRowsOfState } from '@drover/coordinator/view/state';
import { UsageError } from '@drover/core/errors';
import { diagnosticsRedactor } from '../diagnostics.ts';
import { offerIdCompletions } from '../history/id.ts';
import { offerTaskCompletions } from '../history/run-records.ts';
import { printError, type Io, print, printJsonLine } from '../io.ts';
import { colourPatch, colourStat, cleanPatch } from '../result/diff-style.ts';
import { type RunDiff, withRunDiff } from '../result/run-diff.ts';
import { type NamedRun, findNamedRun } from '../result/run-store.ts';
import { defineCommand, flagOption, type Values } from '../start/command.ts';
import { exitCode } from '../start/exit-code.ts';
import { showInPager } from '../terminal/pager.ts';
import { textStyle } from '../views/text/style.ts';
import { terminalColumns, textForLog, isTerminalRead } from '../views/text/terminal-text.ts';

const options = {
  stat: flagOption('Options:', 'List the files with their count of changed lines'),
  patch: flagOption('Options:', 'Print the patch (default); with --stat, behind the list'),
  'name-only': flagOption('Options:', 'List the names of the files'),
  json: flagOption('Options:', 'Print the files with their counts as one JSON object; with --patch also the patch'),
};

type DiffArgs = Values<typeof options>;

export const diff = defineCommand({
  word: {
    name: 'run',
    about: 'Run: its id or a unique prefix (default: the newest run of this repository)',
    required: false,
    offered: offerIdCompletions,
  },
  second: { name: 'task', about: 'Show only what this task changed', required: false, offered: offerTaskCompletions },
  options,
  examples: [
    ['drover diff', 'Show the changes of the newest run'],
    ['drover diff 1a2b3c billing', 'Show one task, also if it did not land or is still at work'],
    ['drover diff 1a2b3c --stat', 'The files, with their count of changed lines'],
    ['drover diff 1a2b3c | git apply', 'Take the changes over by hand'],
  ],
  async run({ word, second, ...args }, io) {
    if (args['name-only'] && (args.stat || args.patch))
      throw new UsageError(`--name-only lists names alone; leave out --${args.stat ? 'stat' : 'patch'}`);
    const run = await findNamedRun(word, io);
    await withRunDiff(run, { task: second, io }, (changes) => printDiff(changes, { args, run, task: second }, io));
    return exitCode.done;
  },
});

type Shown = { readonly args: DiffArgs; readonly run: NamedRun; readonly task: string | undefined };

async function printDiff(changes: RunDiff, about: Shown, io: Io): Promise<void> {
  const { args, run, task } = about;
  if (args.json) return printJsonLine(io, await diffAsJson(changes, about));
  const note = diffNote(run, task);
  if (note !== undefined) await printError(io, note);
  if (isDiffForReading(args, io)) return showInPager(await diffCommandText(changes, args, io), io);
  // Exact bytes: the reader may be git apply.
  for (const form of listDiffForms(args)) {
    const bytes = Buffer.from(await changes.text({ form: form === 'patch' ? 'whole' : form }), 'latin1');
    await print(io.stdout, bytes);
  }
}

/** A terminal, or a CI runner that obeys lines of its log. A pipe and a file get the exact bytes. */
function isDiffForReading({ patch }: DiffArgs, { stdout, env }: Io): boolean {
  return stdout.isTTY === true || (isTerminalRead(env) && !patch);
}

async function diffCommandText(changes: RunDiff, args: DiffArgs, io: Io): Promise<string> {
  const style = textStyle(io.stdout, io.env);
  const columns = terminalColumns(io.stdout);
  const redactor = await diagnosticsRedactor(io);
  const parts = await Promise.all(
    listDiffForms(args).map(async (form) => {
      const raw = await changes.text({ form, ...(Number.isFinite(columns) && { columns }) });
      const safe = textForLog(redactor.text(cleanPatch(raw)), io.env);
      return form === 'patch' ? colourPatch(safe, style) : form === 'stat' ? colourStat(safe, style) : safe;
    }),
  );
  return parts.filter((part) => part !== '').join('\n');
}

function listDiffForms(args: DiffArgs): readonly ('stat' | 'names' | 'patch')[] {
  if (args['name-only']) return ['names'];
  return args.stat ? ['stat', ...(args.patch ? (['patch'] as const) : [])] : ['patch'];
}

async function diffAsJson(changes: RunDiff, { args, run, task }: Shown): Promise<object> {
  const { from, to } = changes;
  const patch = args.patch ? readableDiffText(await changes.text({ form: 'whole' })) : undefined;
  return {
    run: run.id,
    ...(task !== undefined && { task }),
    ...(from !== '' && { from, to }),
    files: await changes.files(),
    ...(patch !== undefined && { patch }),
  };
}

function readableDiffText(raw: string): string {
  return Buffer.from(raw, 'latin1').toString('utf8');
}

/** Names the work that the changes leave out. */
function diffNote(run: NamedRun, task: string | undefined): string | undefined {
  if (task !== undefined) return undefined;
  const { state, past, short, settings } = run;
  const open = [...state.tasks.keys()].filter((id) => past?.ledger.task(id).step.at === 'attempting');
  const kept = taskRowsOfState(state).filter(({ status, commit }) => status !== 'landed' && commit !== undefined);
  const others = [...new Set([...open, ...kept.map(({ task: id }) => id)])];
  const [first] = others;
  if (first === undefined) return state.head === settings.base ? `nothing has landed in run ${short}` : undefined;
  const many = others.length === 1 ? `task ${first} has` : `${others.length} tasks have`;
  return `${many} changes that have not landed; see them with: drover diff ${short} ${first}`;
}

// drover rm <run>: removes a run with everything that drover keeps of it, and says first what is lost.

import { UsageError } from '@drover/core/errors';
import { findRunOrSession, offerIdCompletions, shortenStoredId } from '../history/id.ts';
import { readRunState } from '../history/run.ts';
import { type Io, printLine, printJsonLine } from '../io.ts';
import { type Removal, planRunRemoval, removeRun } from '../result/remove-run.ts';
import { defineCommand, flagOption } from '../start/command.ts';
import { exitCodeOfStop, exitCode } from '../start/exit-code.ts';
import { stateFolder } from '../start/settings.ts';
import { watchForStopSignal } from '../stop.ts';
import { Person } from '../terminal/person.ts';
import { formatBytes } from '../gc/removal-list.ts';
import { cleanText } from '../views/text/terminal-text.ts';

const ANSWERS: ReadonlyMap<string, boolean> = new Map([
  ['y', true],
  ['yes', true],
  ['n', false],
  ['no', false],
]);

export const rm = defineCommand({
  word: { name: 'run', about: 'Run: its id or a unique prefix', required: true, offered: offerIdCompletions },
  options: {
    yes: flagOption('Options:', 'Remove it even if work is lost that exists nowhere else'),
    json: flagOption('Options:', 'Print what was removed and lost as one JSON object'),
  },
  examples: [
    ['drover rm 1a2b3c', 'Remove a run; asks if its work exists nowhere else'],
    ['drover rm 1a2b3c --yes', 'Remove it, whatever is lost'],
  ],
  async run({ word = '', yes, json }, io) {
    const home = stateFolder(io);
    const { kind, id } = await findRunOrSession(home, word);
    const short = shortenStoredId(home, id);
    if (kind === 'session') throw new UsageError(`${short} is a session; drover gc --older-than removes old ones`);
    const removal = await planRunRemoval(await readRunState(home, id), short, io);
    if (!json) await printLine(io, cleanText(rmListing(removal, short)));
    const stop = watchForStopSignal(io, () => undefined);
    try {
      const isAgreed = removal.lost.length === 0 || yes || (!json && (await confirmRm(io, stop.signal)));
      if (stop.signal.aborted) return exitCodeOfStop(stop.cause());
      if (!isAgreed)
        throw new UsageError(
          `run ${short} was not removed: it holds the only copy of work; remove it with: drover rm ${short} --yes`,
        );
    } finally {
      stop.close();
    }
    const { stayed } = await removeRun(removal, short, io);
    if (json) await printJsonLine(io, { run: id, removed: true, lost: removal.lost, stayed });
    else await printLine(io, cleanText(rmResultText(short, stayed)));
    return exitCode.done;
  },
});

function rmListing({ remains, bytes, lost }: Removal, short: string): string {
  const many = (count: number, one: string, more: string) => `${count} ${count === 1 ? one : more}`;
  const things = [
    `its journal and outputs (${formatBytes(bytes)})`,
    ...(remains === undefined || remains.slots.length === 0
      ? []
      : [many(remains.slots.length, 'workspace', 'workspaces')]),
    ...(remains === undefined || remains.userBranches.length === 0
      ? []
      : [many(remains.userBranches.length, 'branch of a task', 'branches of tasks')]),
  ];
  const losses = lost.map((each) => `  ${each}\n`).join('');
  return `Run ${short}: ${things.join(', ')}.\n${losses === '' ? '' : `Lost with it, since it exists nowhere else:\n${losses}`}`;
}

function rmResultText(short: string, stayed: readonly string[]): string {
  const kept = stayed.map((branch) => `  ${branch}\n`).join('');
  return `Removed run ${short}.\n${kept === '' ? '' : `These branches stay, since you changed them or have them checked out:\n${kept}`}`;
}

async function confirmRm(io: Io, signal: AbortSignal): Promise<boolean> {
  const person = Person.at(io);
  if (person === undefined) return false;
  try {
    return (await person.choose('Remove it? [y]es [n]o: ', ANSWERS, signal)) ?? false;
  } finally {
    person.close();
  }
}

// drover rm <run>: removes a run with everything that drover keeps of it, and says first what is lost.

import { UsageError } from '@drover/core/errors';
import { findKept, offeredIds, shortIdIn } from '../history/id.ts';
import { readRun } from '../history/run.ts';
import { type Io, tell, tellJson } from '../io.ts';
import { type Removal, removalOf, removeRun } from '../result/remove-run.ts';
import { command, flag } from '../start/command.ts';
import { codeOfStop, exitCode } from '../start/exit-code.ts';
import { stateFolder } from '../start/settings.ts';
import { watchForStop } from '../stop.ts';
import { Person } from '../terminal/person.ts';
import { inBytes } from '../gc/removal-list.ts';
import { clean } from '../views/text/terminal-text.ts';

const ANSWERS: ReadonlyMap<string, boolean> = new Map([
  ['y', true],
  ['yes', true],
  ['n', false],
  ['no', false],
]);

export const rm = command({
  word: { name: 'run', about: 'Run: its id or a unique prefix', required: true, offered: offeredIds },
  options: {
    yes: flag('Options:', 'Remove it even if work is lost that exists nowhere else'),
    json: flag('Options:', 'Print what was removed and lost as one JSON object'),
  },
  examples: [
    ['drover rm 1a2b3c', 'Remove a run; asks if its work exists nowhere else'],
    ['drover rm 1a2b3c --yes', 'Remove it, whatever is lost'],
  ],
  async run({ word = '', yes, json }, io) {
    const home = stateFolder(io);
    const { kind, id } = await findKept(home, word);
    const short = shortIdIn(home, id);
    if (kind === 'session') throw new UsageError(`${short} is a session; drover gc --older-than removes old ones`);
    const removal = await removalOf(await readRun(home, id), short, io);
    if (!json) await tell(io, clean(listing(removal, short)));
    const stop = watchForStop(io, () => undefined);
    try {
      const isAgreed = removal.lost.length === 0 || yes || (!json && (await isAgreedTo(io, stop.signal)));
      if (stop.signal.aborted) return codeOfStop(stop.cause());
      if (!isAgreed)
        throw new UsageError(
          `run ${short} was not removed: it holds the only copy of work; remove it with: drover rm ${short} --yes`,
        );
    } finally {
      stop.close();
    }
    const { stayed } = await removeRun(removal, short, io);
    if (json) await tellJson(io, { run: id, removed: true, lost: removal.lost, stayed });
    else await tell(io, clean(done(short, stayed)));
    return exitCode.done;
  },
});

function listing({ remains, bytes, lost }: Removal, short: string): string {
  const many = (count: number, one: string, more: string) => `${count} ${count === 1 ? one : more}`;
  const things = [
    `its journal and outputs (${inBytes(bytes)})`,
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

function done(short: string, stayed: readonly string[]): string {
  const kept = stayed.map((branch) => `  ${branch}\n`).join('');
  return `Removed run ${short}.\n${kept === '' ? '' : `These branches stay, since you changed them or have them checked out:\n${kept}`}`;
}

async function isAgreedTo(io: Io, signal: AbortSignal): Promise<boolean> {
  const person = Person.at(io);
  if (person === undefined) return false;
  try {
    return (await person.choose('Remove it? [y]es [n]o: ', ANSWERS, signal)) ?? false;
  } finally {
    person.close();
  }
}

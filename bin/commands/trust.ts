// drover trust: let the config of this project set what a project may not, for as long as nobody changes it.

import { UsageError } from '@drover/core/failure';
import { approve, isApproved, revoke } from '../approved-configs.ts';
import { command, flag, nonEmpty, value } from '../command.ts';
import { Person } from '../execution/person.ts';
import { codeOfStop, exitCode } from '../exit-code.ts';
import { type Io, print } from '../io.ts';
import { type ConfigFile, configPaths, readProjectConfig, stateFolder, workFolder } from '../settings.ts';
import { watchForStop } from '../stop.ts';
import { styleFor } from '../views/style.ts';
import { clean } from '../views/terminal-text.ts';

export const trust = command({
  options: {
    cwd: value('Input:', 'DIR', 'The folder of the project', nonEmpty),
    yes: flag('Options:', 'Approve it without asking'),
    revoke: flag('Options:', 'Take the approval back'),
  },
  examples: [
    ['drover trust', 'See what the project’s config says, and approve it'],
    ['drover trust --revoke', 'Treat it as a stranger’s again'],
  ],
  async run({ cwd, yes, revoke: isRevoked }, io) {
    const home = stateFolder(io);
    const folder = await workFolder(cwd, io);
    const { project } = await configPaths(io, folder);
    const file = project === undefined ? undefined : await readProjectConfig(project);
    if (file === undefined)
      throw new UsageError(`no project here has a .drover/config.yaml (looked from ${folder} up)`);
    if (isRevoked) {
      await revoke(home, file);
      await print(io.stdout, `${clean(file.path)} is not approved any more.\n`);
      return exitCode.done;
    }
    if (await isApproved(home, file)) {
      await print(io.stdout, `${clean(file.path)} is approved already, just as it is.\n`);
      return exitCode.done;
    }
    await print(io.stdout, contentOf(file, io));
    return yes ? approved(home, file, io) : asked(home, file, io);
  },
});

function contentOf({ path, text }: ConfigFile, io: Io): string {
  const style = styleFor(io.stdout, io.env);
  const lines = clean(text).trimEnd().split('\n');
  return `${style('bold', clean(path))}\n${lines.map((line) => `  ${style('dim', '|')} ${line}\n`).join('')}`;
}

const ANSWERS: ReadonlyMap<string, boolean> = new Map([
  ['y', true],
  ['yes', true],
  ['n', false],
  ['no', false],
]);

async function asked(home: string, file: ConfigFile, io: Io): Promise<number> {
  const person = Person.at(io);
  if (person === undefined) throw new UsageError('nobody is here to approve it; say so with --yes');
  const stop = watchForStop(io, () => undefined);
  try {
    const words = '\nMay it set all of this, where requests go and what is allowed included? [y]es [n]o: ';
    const isAgreed = await person.choose(words, ANSWERS, stop.signal);
    if (stop.signal.aborted) return codeOfStop(stop.cause());
    if (isAgreed === true) return await approved(home, file, io);
    await print(io.stdout, 'Nothing was approved.\n');
    return exitCode.done;
  } finally {
    stop.close();
    person.close();
  }
}

async function approved(home: string, file: ConfigFile, io: Io): Promise<number> {
  await approve(home, file);
  await print(io.stdout, 'It is approved as it is; a change of it has to be approved again.\n');
  return exitCode.done;
}

// drover trust: approves the config of this project with all its keys, until the file changes or moves.
//
// The file is read once: the bytes that are shown are the bytes whose digest is stored. Invisible characters are
// refused by the reader. The output hides only exact values of secrets, which a stranger does not know. Redaction by
// pattern would let a config hide lines from the user.

import { UsageError } from '@drover/core/errors';
import { approvalOf, approve, type ProjectConfig, revoke, whyNotApproved } from '../start/approved-configs.ts';
import { command, flag, nonEmpty, value } from '../start/command.ts';
import { Person } from '../terminal/person.ts';
import { redactorFor } from '../diagnostics.ts';
import { codeOfStop, exitCode } from '../start/exit-code.ts';
import { type Io, print } from '../io.ts';
import {
  type ConfigFile,
  configPaths,
  projectOf,
  readProjectConfig,
  stateFolder,
  workFolder,
} from '../start/settings.ts';
import { watchForStop } from '../stop.ts';
import { styleFor } from '../views/text/style.ts';
import { clean, forLog } from '../views/text/terminal-text.ts';

export const trust = command({
  options: {
    cwd: value('Input:', 'DIR', 'Folder of the project (default: the current folder)', nonEmpty),
    yes: flag('Options:', 'Approve without asking'),
    revoke: flag('Options:', 'Revoke the approval'),
  },
  examples: [
    ['drover trust', 'Review the config of the project, and approve it'],
    ['drover trust --revoke', 'Treat the config as untrusted again'],
  ],
  async run({ cwd, yes, revoke: isRevoked }, io) {
    const home = stateFolder(io);
    const folder = await workFolder(cwd, io);
    const { project: path } = await configPaths(io, folder);
    const file = path === undefined ? undefined : await readProjectConfig(path);
    if (file === undefined)
      throw new UsageError(`no project here has a .drover/config.yaml (looked from ${folder} up)`);
    const project = await projectOf(file);
    if (isRevoked) {
      await revoke(home, project);
      await print(io.stdout, `${clean(file.path)} is no longer approved.\n`);
      return exitCode.done;
    }
    const approval = await approvalOf(home, project);
    if (approval === 'approved') {
      await print(io.stdout, `${clean(file.path)} is already approved.\n`);
      return exitCode.done;
    }
    const redactor = await redactorFor(io, 'values only');
    const content = contentOf(file, io);
    const shown = redactor.text(content);
    await print(io.stdout, forLog(shown, io.env));
    if (shown !== content) await print(io.stdout, 'It holds values of your secrets, which are not shown.\n');
    const why = whyNotApproved(approval);
    if (why !== undefined) await print(io.stdout, `Approve it again: ${why}.\n`);
    return yes ? approved(home, project, io) : asked(home, project, io);
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

async function asked(home: string, project: ProjectConfig, io: Io): Promise<number> {
  const person = Person.at(io);
  if (person === undefined) throw new UsageError('there is no terminal to ask on; approve it with --yes');
  const stop = watchForStop(io, () => undefined);
  try {
    const words =
      '\nApprove these settings? They can choose where requests go and which tools run without asking. [y]es [n]o: ';
    const isAgreed = await person.choose(words, ANSWERS, stop.signal);
    if (stop.signal.aborted) return codeOfStop(stop.cause());
    if (isAgreed === true) return await approved(home, project, io);
    await print(io.stdout, 'Nothing was approved.\n');
    return exitCode.done;
  } finally {
    stop.close();
    person.close();
  }
}

async function approved(home: string, project: ProjectConfig, io: Io): Promise<number> {
  await approve(home, project);
  await print(io.stdout, 'Approved. If the file changes or moves, approve it again.\n');
  return exitCode.done;
}
